package observer

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// The figures are per kind. They count the objects of all owners, and the bytes of a whole
// object while it differs.
func TestStats(t *testing.T) {
	f, _ := started(t)
	list, err := f.client.Resource(configMaps).List(t.Context(), metav1.ListOptions{LabelSelector: label})
	kit.Must(t, err)
	f.observe(t, other, f.service("absent"))
	stats := f.Stats()
	bytes := stats[0].Bytes
	stats[0].Bytes = 0
	want := []Stat{{Resource: configMaps, Objects: len(list.Items)}, {Resource: services, Objects: stats[1].Objects, Bytes: stats[1].Bytes}}
	check.Equal(t, "held", want, stats)
	if bytes < recordBytes*int64(len(list.Items)) {
		t.Errorf("%d bytes of %d objects are too few", bytes, len(list.Items))
	}

	big := strings.Repeat("x", 10_000)
	f.change(t, "web", `{"data": {"a": "2", "c": "`+big+`"}}`)
	f.flush(t)
	if got := f.Stats()[0].Bytes; got < bytes+10_000 {
		t.Errorf("%d bytes with a whole object, want 10000 more than %d", got, bytes)
	}
	f.change(t, "web", `{"data": {"a": "1"}}`)
	f.flush(t)
	if got := f.Stats()[0].Bytes; got > bytes+5_000 {
		t.Errorf("%d bytes without the whole object, want about %d", got, bytes)
	}
}

// A stored record does not refer to the rest of its object.
func TestKeptIsSmall(t *testing.T) {
	if got := keep(t, 500, 40_000, true); got > 4000 {
		t.Errorf("%.0f bytes are kept of an object of 40000, want what is observed of it", got)
	}
}

// BenchmarkKept measures the memory of a matching object with its place in the store: of an
// observed object, and of one without an owner.
func BenchmarkKept(b *testing.B) {
	for name, observed := range map[string]bool{"Observed": true, "Nobodys": false} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(keep(b, 5000, 500, observed), "bytes/object")
			}
		})
	}
}

// keep observes and stores objects of this size, and returns the bytes per object.
func keep(t testing.TB, objects, size int, observed bool) float64 {
	t.Helper()
	o := New(t.Context(), Options{Now: time.Now})
	name := func(i int) string { return fmt.Sprintf("%06d", i) }
	target := (&fixture{namespace: "demo"}).target("web")
	for i := range objects {
		if observed {
			o.registry.setViewsLocked(key{configMaps, "demo", name(i)}, []*view{{owner: web, target: target}})
		}
	}
	text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "NAME", "namespace": "demo",
		"uid": "d9607e19-f88f-11e6-a518-42010aNAME", "resourceVersion": "1NAME", "labels": {%q: "yes"}},
		"data": {"a": "1", "b": "1", "large": %q}}`, label, strings.Repeat("x", size))
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	before := heap()
	for i := range objects {
		live := &unstructured.Unstructured{}
		kit.Must(t, live.UnmarshalJSON([]byte(strings.ReplaceAll(text, "NAME", name(i)))))
		kit.Must(t, store.Add(o.informers.source.transform(configMaps, live)))
	}
	after := heap()
	if len(store.ListKeys()) != objects {
		t.Fatalf("%d objects are stored, want %d", len(store.ListKeys()), objects)
	}
	runtime.KeepAlive(o)
	return (after - before) / float64(objects)
}

func heap() float64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}
