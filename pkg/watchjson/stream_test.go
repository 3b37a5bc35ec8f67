package watchjson

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/krake-observer/krake-observer/test/kit"
)

func TestEventsOfAWatch(t *testing.T) {
	const song = `{"kind": "Song", "metadata": {"name": "x", "uid": "u", "resourceVersion": "7"}}`
	cases := []struct {
		name, text string
		want       []string
	}{
		{"objects", `{"type": "ADDED", "object": ` + song + `}{"type":"MODIFIED","object":` + song + "}\n" + `{"object": ` + song + `, "type": "DELETED"}`,
			[]string{"ADDED x 7", "MODIFIED x 7", "DELETED x 7"}},
		{"a bookmark", `{"type": "BOOKMARK", "object": {"kind": "Song", "metadata": {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}}}}`,
			[]string{"BOOKMARK  9 true"}},
		{"an error", `{"type": "ERROR", "object": {"kind": "Status", "status": "Failure", "reason": "Expired", "message": "too old", "code": 410}}`, []string{"ERROR Expired too old"}},
		{"a brace and a quote in a text", `{"type": "ADDED", "object": {"metadata": {"name": "x"}, "data": {"a": "}}}}\"}]\\"}}}` + "\n", []string{"ADDED x "}},
		{"half an event", `{"type": "ADDED", "object": ` + song, nil},
		{"nothing", "", nil},
		{"no event", `[1]`, []string{"ERROR InternalError unable to decode an event from the watch stream: the event is no JSON object, or too large"}},
		{"an end too many", `}`, []string{"ERROR InternalError unable to decode an event from the watch stream: the event is no JSON object, or too large"}},
		{"no object", `{"type": "ADDED", "object": 1}`, []string{"ERROR InternalError"}},
		{"no JSON", `{"type": "ADDED", "object": {"metadata": {"name": nonsense}}}`, []string{"ERROR InternalError"}},
		{"no type", `{"object": ` + song + `}`, []string{"ERROR InternalError"}},
		{"an unknown type, and what comes after it", `{"type": "RENAMED", "object": ` + song + `}{"type": "ADDED", "object": ` + song + `}`, []string{"ERROR InternalError"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for name, body := range map[string]io.Reader{
				"at once": strings.NewReader(c.text), "byte by byte": iotest.OneByteReader(strings.NewReader(c.text)),
				"broken": io.MultiReader(strings.NewReader(c.text), iotest.ErrReader(errors.New("broken"))),
			} {
				if got := eventsOf(t, body); !matches(got, c.want) {
					t.Errorf("%s (-want +got):\n%s", name, cmp.Diff(c.want, got))
				}
			}
		})
	}
}

// matches compares the beginnings.
func matches(got, want []string) bool {
	if len(got) != len(want) {
		return false
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			return false
		}
	}
	return true
}

func eventsOf(t *testing.T, body io.Reader) []string {
	t.Helper()
	w := watchOf(io.NopCloser(body))
	defer w.Stop()
	var got []string
	for event := range w.ResultChan() {
		switch object := event.Object.(type) {
		case *unstructured.Unstructured:
			got = append(got, fmt.Sprintf("%s %s %s", event.Type, object.GetName(), object.GetResourceVersion()))
		case *metav1.PartialObjectMetadata:
			got = append(got, fmt.Sprintf("%s %s %s %s", event.Type, object.Name, object.ResourceVersion, object.Annotations[metav1.InitialEventsAnnotationKey]))
		case *metav1.Status:
			got = append(got, fmt.Sprintf("%s %s %s", event.Type, object.Reason, object.Message))
		}
	}
	return got
}

// songs is the resource that the tests watch.
type songs struct{}

func (songs) String() string { return "songs" }

// watchOf returns a watch that decodes whole objects.
func watchOf(body io.ReadCloser) watch.Interface {
	d := NewDecoder()
	return d.Watch(body, songs{}, whole(d))
}

func whole(d *Decoder) func(text []byte) (runtime.Object, error) {
	return func(text []byte) (runtime.Object, error) {
		fields, err := d.Object(text)
		return &unstructured.Unstructured{Object: fields}, err
	}
}

// A decoded event does not refer to the buffer, which the next event overwrites.
func TestAnEventSharesNothingWithItsText(t *testing.T) {
	d := NewDecoder()
	s := stream{decoder: d, of: songs{}, object: whole(d)}
	text := []byte(`{"type": "MODIFIED", "object": {"apiVersion": "v1", "kind": "Song", "metadata": {"name": "x", "uid": "u", "resourceVersion": "7"}, "data": {"a": "a longer value than those that are kept once"}, "spec": {"replicas": 3}}}`)
	event, err := s.event(text)
	kit.Must(t, err)
	before := fmt.Sprintf("%+v", event)
	for i := range text {
		text[i] = 'x'
	}
	if after := fmt.Sprintf("%+v", event); after != before {
		t.Errorf("the event has become %s, and was %s", after, before)
	}
}

// A stream does not wait for a reader that has stopped.
func TestAStoppedStreamEnds(t *testing.T) {
	reader, writer := io.Pipe()
	defer func() { _ = writer.Close() }()
	w := watchOf(reader)
	_, err := io.WriteString(writer, `{"type": "ADDED", "object": {"metadata": {"name": "x"}}}`)
	kit.Must(t, err)
	w.Stop()
	w.Stop()
	select {
	case <-drained(w):
	case <-time.After(kit.Timeout):
		t.Fatal("it goes on")
	}
}

func drained(w watch.Interface) <-chan struct{} {
	end := make(chan struct{})
	go func() {
		defer close(end)
		for range w.ResultChan() { // an event on its way may still arrive
		}
	}()
	return end
}
