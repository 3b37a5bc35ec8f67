package observer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// watches are the watches of ConfigMaps that pass through a test's transport, which may lose
// events.
type watches struct {
	// lose reports whether an event is lost. place is its number among the events about
	// objects of the namespace, from 1.
	lose  atomic.Pointer[func(place int) bool]
	about atomic.Pointer[string]
	// refuseLists refuses lists of metadata.
	refuseLists atomic.Bool
	lists       atomic.Int64

	mu   sync.Mutex
	seen int
	// opened counts the watches. Only the first faulty ones lose events.
	opened, faulty int
}

func (w *watches) option(options *Options, config *rest.Config) {
	options.Resync = 300 * time.Millisecond
	throughTransport(w.wrap)(options, config)
}

func (w *watches) wrap(next http.RoundTripper) roundTrip {
	return func(request *http.Request) (*http.Response, error) {
		isWatch := request.URL.Query().Get("watch") == "true"
		if strings.Contains(request.Header.Get("Accept"), "PartialObjectMetadata") {
			w.lists.Add(1)
			if w.refuseLists.Load() {
				return refusal(request, http.StatusInternalServerError), nil
			}
		}
		response, err := next.RoundTrip(request)
		if err != nil || !isWatch || !strings.HasSuffix(request.URL.Path, "/configmaps") {
			return response, err
		}
		reader, writer := io.Pipe()
		body := response.Body
		go w.copy(writer, body, w.open())
		response.Body = pipe{reader, body}
		return response, nil
	}
}

// pipe is a body that is closed together with its source.
type pipe struct {
	*io.PipeReader

	from io.Closer
}

func (p pipe) Close() error {
	if err := p.PipeReader.Close(); err != nil {
		return err
	}
	return p.from.Close()
}

// open returns the number of a new watch.
func (w *watches) open() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.opened++
	return w.opened
}

func (w *watches) copy(to *io.PipeWriter, from io.Reader, watch int) {
	events := json.NewDecoder(from)
	for {
		var event json.RawMessage
		if err := events.Decode(&event); err != nil {
			to.CloseWithError(err)
			return
		}
		if w.lost(event, watch) {
			continue
		}
		if _, err := to.Write(event); err != nil {
			return
		}
	}
}

func (w *watches) lost(event []byte, watch int) bool {
	about, lose := w.about.Load(), w.lose.Load()
	if lose == nil || !bytes.Contains(event, []byte(`"namespace":"`+*about+`"`)) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if watch > w.faulty {
		return false
	}
	w.seen++
	return (*lose)(w.seen)
}

// losing makes the open watches lose events about objects of the fixture.
func (w *watches) losing(f *fixture, lose func(place int) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faulty = w.opened
	w.about.Store(&f.namespace)
	w.lose.Store(&lose)
}

// resyncs runs Resync as long as the test.
func (f *fixture) resyncs(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f.Resync(ctx) }()
	t.Cleanup(func() {
		stop()
		check.Fails(t, "resync", <-done, "")
	})
}

// converges waits until the observation of web matches the live object.
func (f *fixture) converges(t *testing.T) {
	t.Helper()
	kit.Eventually(t, func() string {
		known := f.last(web, "web")
		var want Observation
		list, err := f.client.Resource(configMaps).Namespace(f.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: label})
		kit.Must(t, err)
		for _, item := range list.Items {
			if item.GetName() == "web" {
				want = Observation{UID: item.GetUID(), ResourceVersion: item.GetResourceVersion()}
			}
		}
		if known.UID != want.UID || want.Exists() && known.ResourceVersion != want.ResourceVersion {
			return fmt.Sprintf("known is %+v, want %+v", known, want)
		}
		return ""
	})
}

// After the loss of any event, or of all, the observations become correct again, and the owner
// is notified.
func TestResyncFindsWhatWasLost(t *testing.T) {
	t.Parallel()
	drop := func(n int) func(int) bool { return func(place int) bool { return place == n } }
	all := func(int) bool { return true }
	change := func(t *testing.T, f *fixture) { t.Helper(); f.change(t, "web", `{"data": {"a": "2"}}`) }
	remove := func(t *testing.T, f *fixture) { t.Helper(); f.delete(t, "web") }
	create := func(t *testing.T, f *fixture) { t.Helper(); f.create(t, "web") }
	unlabel := func(t *testing.T, f *fixture) {
		t.Helper()
		f.change(t, "web", `{"metadata": {"labels": {"`+label+`": null}}}`)
	}
	label := func(t *testing.T, f *fixture) {
		t.Helper()
		f.change(t, "web", `{"metadata": {"labels": {"`+label+`": "yes"}}}`)
	}
	type step = func(*testing.T, *fixture)
	cases := []struct {
		name  string
		lose  func(int) bool
		steps []step
		quiet bool // the final object matches
	}{
		{"a change", drop(1), []step{change}, false},
		{"the first of two changes is told by the second", drop(1), []step{change, change}, false},
		{"a deletion", drop(1), []step{remove}, false},
		{"a deletion of what was created again", drop(1), []step{remove, create}, true},
		{"a creation", drop(2), []step{remove, create}, false},
		{"a deletion and a creation", all, []step{remove, create}, true},
		{"the last deletion", drop(3), []step{remove, create, remove}, false},
		{"the loss of our label", drop(1), []step{unlabel}, false},
		{"the return of our label", drop(2), []step{unlabel, label}, false},
		{"a watch that is open, but mute", all, []step{change, remove, create, change}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := &watches{}
			f, _ := started(t, w.option)
			w.losing(f, c.lose)
			for _, do := range c.steps {
				do(t, f)
			}
			f.resyncs(t)
			f.converges(t)
			check.Equal(t, "web has heard of it", !c.quiet, f.count(web) > 0)
		})
	}
}

// Only the owner knows an object that it has created and that the watch has never reported.
// The list finds its deletion nevertheless.
func TestResyncFindsTheDeletionOfWhatWasNeverSeen(t *testing.T) {
	t.Parallel()
	w := &watches{}
	f, _ := started(t, w.option)
	w.losing(f, func(int) bool { return true })
	targets := []Target{f.target("web"), f.target("own")}
	f.observe(t, web, targets...)
	created := f.create(t, "own")
	f.Start(web, targets, []map[string]any{created})
	f.delete(t, "own")
	f.resyncs(t)
	kit.Eventually(t, func() string {
		if known := f.last(web, "own"); known.Exists() {
			return fmt.Sprintf("known is %+v, and it is gone", known)
		}
		return ""
	})
	check.Equal(t, "web has heard of it", true, f.count(web) > 0)
}

// A replaced informer notifies an owner only of news. Other owners are not notified, and
// observations stay known meanwhile.
func TestResyncKeepsWhatIsKnown(t *testing.T) {
	t.Parallel()
	w := &watches{}
	f, _ := started(t, w.option)
	f.has(t, other, "other")
	f.flush(t) // the change is to be lost, not the creation
	w.losing(f, func(place int) bool { return place == 1 })
	former := f.kindOf(configMaps).current
	f.change(t, "web", `{"data": {"a": "2"}}`)
	f.resyncs(t)
	until(t, "the informer was not replaced", func() bool {
		if known := f.last(other, "other"); known.Differs() {
			t.Fatalf("known is %+v", known)
		}
		return f.currently(configMaps) != former
	})
	f.heardOf(t, web)
	f.flush(t)
	f.expect(t)
	until(t, "the former informer still runs", former.IsStopped)
}

func (f *fixture) currently(resource gvr.GroupVersionResource) *informer {
	f.registry.mu.RLock()
	defer f.registry.mu.RUnlock()
	return f.informers.kinds[scope{resource: resource}].current
}

// As long as no event is lost no informer is replaced, however much changes.
func TestResyncWithoutLoss(t *testing.T) {
	t.Parallel()
	w := &watches{}
	f, _ := started(t, w.option)
	former := f.currently(configMaps)
	f.resyncs(t)
	for round := 0; w.lists.Load() < 6; round++ {
		f.change(t, "web", fmt.Sprintf(`{"data": {"c": "%d"}}`, round))
		if round%3 == 0 {
			f.create(t, "passing")
			f.delete(t, "passing")
		}
	}
	f.flush(t)
	f.expect(t)
	check.Equal(t, "the informer was replaced", false, f.currently(configMaps) != former)
}

// An informer whose first watch stays silent does not block its owners without end.
func TestResyncOfInformerThatNeverSyncs(t *testing.T) {
	t.Parallel()
	var watches atomic.Int64
	f := newFixture(t, func(options *Options, _ *rest.Config) { options.Resync = 300 * time.Millisecond },
		throughTransport(func(next http.RoundTripper) roundTrip {
			return func(request *http.Request) (*http.Response, error) {
				if request.URL.Query().Get("watch") != "true" || watches.Add(1) > 1 {
					return next.RoundTrip(request)
				}
				mute, writer := io.Pipe()
				context.AfterFunc(request.Context(), func() { writer.CloseWithError(io.EOF) })
				return &http.Response{
					StatusCode: http.StatusOK, Request: request, Body: mute, Header: http.Header{"Content-Type": {"application/json"}},
				}, nil
			}
		}))
	f.create(t, "web")
	f.resyncs(t)
	f.observe(t, web, f.target("web"))
	if got := watches.Load(); got < 2 {
		t.Errorf("%d watches, want another after the mute one", got)
	}
}

// A failed list does not change the observations.
func TestResyncThatFails(t *testing.T) {
	t.Parallel()
	w, log := &watches{}, &lines{}
	f, _ := started(t, w.option, log.option)
	former := f.currently(configMaps)
	w.refuseLists.Store(true)
	f.resyncs(t)
	until(t, "the log has no error", func() bool { return strings.Contains(log.text(), "list metadata of /v1, Resource=configmaps") })
	f.flush(t)
	f.expect(t)
	check.Equal(t, "what was known was given up", false, f.currently(configMaps) != former || f.last(web, "web").Differs())
}

// An owner that cannot wait for the next turn of the kinds requests an immediate comparison.
// It replaces an informer that has lost an event, and one whose first list was refused and
// that waits for its next try.
func TestResyncNow(t *testing.T) {
	t.Parallel()
	var mended atomic.Bool
	w := &watches{}
	f, _ := started(t, w.option, func(options *Options, _ *rest.Config) { options.Resync = time.Hour },
		throughTransport(func(next http.RoundTripper) roundTrip {
			return func(request *http.Request) (*http.Response, error) {
				if strings.HasSuffix(request.URL.Path, "/services") && !mended.Load() {
					return refusal(request, http.StatusServiceUnavailable), nil
				}
				return next.RoundTrip(request)
			}
		}))
	f.resyncs(t)
	until(t, "the list has not failed yet", func() bool {
		return !errors.Is(f.Observe(other, []Target{f.service("web")})[0].Err, ErrNotSynced)
	})
	f.heardOf(t, other)
	w.losing(f, func(int) bool { return true })
	f.change(t, "web", `{"data": {"a": "2"}}`)
	mended.Store(true)
	waiting := f.next(services)
	for range 3 {
		f.ResyncNow()
	}
	f.converges(t)
	f.heardOf(t, web, other)
	check.Equal(t, "an informer that waited to ask again was replaced", true, waiting != nil && f.currently(services) != waiting)
}

// next returns the informer that is being started.
func (f *fixture) next(resource gvr.GroupVersionResource) *informer {
	f.registry.mu.RLock()
	defer f.registry.mu.RUnlock()
	return f.informers.kinds[scope{resource: resource}].next
}
