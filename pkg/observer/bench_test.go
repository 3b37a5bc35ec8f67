package observer

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/kit"
	"github.com/krake-observer/krake-observer/test/oddjson"
)

func deploymentLooker(t testing.TB) (*Observers, *decoder) {
	t.Helper()
	o := New(t.Context(), Options{Now: time.Now, Logger: logr.Discard(), Summarised: []string{"spec", "status"}})
	target := targetOf(manifest.Ref{
		ID:       manifest.ID{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "demo", Name: "web"},
		Resource: configMaps,
	}, object(t, "{"+oddjson.DeploymentSpec+"}"))
	o.registry.setViewsLocked(keyOf(target), []*view{{owner: web, target: target}})
	return o, newDecoder(o.registry, configMaps)
}

// BenchmarkEvent measures an event that changes nothing observed, from the bytes of its object
// to the stored record. It also measures decoding the whole object.
func BenchmarkEvent(b *testing.B) {
	text := []byte(oddjson.Deployment(7))
	o, d := deploymentLooker(b)
	b.Run("decode=library", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var live unstructured.Unstructured
			if err := live.UnmarshalJSON(text); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode=whole", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := d.json.Object(text); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("look=whole", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var live unstructured.Unstructured
			if err := live.UnmarshalJSON(text); err != nil {
				b.Fatal(err)
			}
			o.informers.source.transform(configMaps, &live)
		}
	})
	b.Run("look=part", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := d.record(text); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("look=part,same=true", func(b *testing.B) {
		b.ReportAllocs()
		o, d := deploymentLooker(b)
		if !saw(o, d, string(text)) {
			b.Fatal("not seen")
		}
		for b.Loop() {
			if _, err := d.record(text); err != nil {
				b.Fatal(err)
			}
		}
	})
	event := fmt.Appendf(nil, `{"type": "MODIFIED", "object": %s}`+"\n", text)
	b.Run("stream=part", func(b *testing.B) {
		b.ReportAllocs()
		o.options.Streams = streamsOf(&again{text: event})
		events, err := o.informers.source.watch(b.Context(), scope{resource: configMaps}, metav1.ListOptions{})
		kit.Must(b, err)
		defer events.Stop()
		for b.Loop() {
			if event := <-events.ResultChan(); event.Type != watch.Modified {
				b.Fatal(event)
			}
		}
	})
}

// again repeats a text without end.
type again struct {
	text []byte
	at   int
}

func (a *again) Read(into []byte) (int, error) {
	n := copy(into, a.text[a.at:])
	a.at = (a.at + n) % len(a.text)
	return n, nil
}
