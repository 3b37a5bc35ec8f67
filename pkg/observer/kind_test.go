package observer

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// songs is a kind that only one test uses.
type songs struct {
	*fixture

	group    string
	resource gvr.GroupVersionResource
}

func newSongs(f *fixture) songs {
	group := f.namespace + ".example.com"
	return songs{f, group, gvr.GroupVersionResource{Group: group, Version: "v1", Resource: "songs"}}
}

// target wants a song, without a namespace if the kind is cluster-scoped.
func (s songs) target(namespace string) Target {
	return targetOf(manifest.Ref{
		ID:       manifest.ID{APIVersion: s.group + "/v1", Kind: "Song", Namespace: namespace, Name: "song"},
		Resource: s.resource,
	}, map[string]any{"spec": map[string]any{"title": "x"}})
}

// serve makes the API server serve songs, and waits until it does.
func (s songs) serve(t *testing.T, scope string) {
	t.Helper()
	var definition map[string]any
	kit.Must(t, yaml.Unmarshal(fmt.Appendf(nil, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: songs.%[1]s}
spec:
  group: %[1]s
  scope: %[2]s
  names: {plural: songs, kind: Song}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`, s.group, scope), &definition))
	_, err := s.client.Resource(kit.Definitions).Create(t.Context(), &unstructured.Unstructured{Object: definition}, metav1.CreateOptions{})
	kit.Must(t, err)
	s.await(t, true)
}

// remove deletes the kind and its objects.
func (s songs) remove(t *testing.T) {
	t.Helper()
	kit.Must(t, s.client.Resource(kit.Definitions).Delete(t.Context(), "songs."+s.group, metav1.DeleteOptions{}))
	s.await(t, false)
}

func (s songs) await(t *testing.T, served bool) {
	t.Helper()
	until(t, "the kind is served, or is not, against what is wanted", func() bool {
		_, err := s.client.Resource(s.resource).List(t.Context(), metav1.ListOptions{})
		return served == (err == nil)
	})
}

func (s songs) create(t *testing.T, namespace string) {
	t.Helper()
	song := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": s.group + "/v1", "kind": "Song",
		"metadata": map[string]any{"name": "song", "labels": map[string]any{label: "yes"}},
		"spec":     map[string]any{"title": "x"},
	}}
	kit.Eventually(t, func() string {
		_, err := s.client.Resource(s.resource).Namespace(namespace).Create(t.Context(), song, metav1.CreateOptions{})
		return check.Message(err) // the storage of a new kind takes a moment
	})
}

// missing waits until the observers know that the kind of the last target is not served.
func (s songs) missing(t *testing.T, targets ...Target) {
	t.Helper()
	until(t, "the kind is not said to be missing", func() bool {
		current := s.Observe(other, targets)
		last := len(current) - 1
		for _, known := range current[:last] {
			kit.Must(t, known.Err)
		}
		return apierrors.IsNotFound(current[last].Err)
	})
}

// A kind is deleted with its objects, and returns with another scope. While it is not served, that is an
// error of its own targets, of which only their owner is notified.
func TestKindThatGoesAway(t *testing.T) {
	t.Parallel()
	f, _ := started(t)
	s := newSongs(f)
	s.serve(t, "Namespaced")
	s.create(t, f.namespace)
	targets := []Target{f.target("web"), s.target(f.namespace)}
	check.Equal(t, "the song is known", true, f.observe(t, other, targets...)[1].Exists())
	first := f.kindOf(s.resource).current
	f.Start(other, targets, nil)

	s.remove(t)
	s.missing(t, targets...)
	f.heardOf(t, other)
	until(t, "the informer of what is not served still runs", first.IsStopped)

	s.serve(t, "Cluster")
	s.create(t, "")
	until(t, "the song of the cluster is not known", func() bool {
		return f.observe(t, other, f.target("web"), s.target(""))[1].Exists()
	})
}

// An object that was deleted with its kind counts as absent when the kind returns, even if the
// deletion event was lost.
func TestObjectThatWentWithItsKind(t *testing.T) {
	t.Parallel()
	f, live := started(t)
	k := f.kindOf(configMaps)
	f.delete(t, "web")
	f.flush(t)
	f.event(next(next(next(live)))) // the deletion event was lost
	f.expect(t, web)
	f.informers.missingPause = time.Hour
	f.informers.failed(k, k.current, apierrors.NewNotFound(configMaps.GroupResource(), ""))
	f.heardOf(t, web)
	f.observe(t, web, f.target("web"))
	check.Equal(t, "the object is known", false, f.last(web, "web").Exists())
}

// A kind that cannot be listed is an error of its own targets. The owner is notified when the
// error ends.
func TestKindThatCannotBeListed(t *testing.T) {
	t.Parallel()
	for _, code := range []int32{http.StatusForbidden, http.StatusInternalServerError} {
		t.Run(http.StatusText(int(code)), func(t *testing.T) {
			t.Parallel()
			var mended atomic.Bool
			f, _ := started(t, throughTransport(func(next http.RoundTripper) roundTrip {
				return func(request *http.Request) (*http.Response, error) {
					if strings.HasSuffix(request.URL.Path, "/services") && !mended.Load() {
						return refusal(request, int(code)), nil
					}
					return next.RoundTrip(request)
				}
			}))
			targets := []Target{f.target("web"), f.service("web")}
			until(t, "the error is not the API server's", func() bool {
				current := f.Observe(other, targets)
				kit.Must(t, current[0].Err)
				var status apierrors.APIStatus
				return errors.As(current[1].Err, &status) && status.Status().Code == code
			})
			f.heardOf(t, other)
			mended.Store(true)
			f.heardOf(t, other)
			f.observe(t, other, targets...)
			f.flush(t)
		})
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (r roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// throughTransport puts a transport between the observers and the API server.
func throughTransport(wrap func(http.RoundTripper) roundTrip) func(*Options, *rest.Config) {
	return func(_ *Options, config *rest.Config) {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return wrap(next) })
	}
}

func refusal(request *http.Request, code int) *http.Response {
	return &http.Response{
		StatusCode: code, Request: request, Header: http.Header{"Content-Type": {"text/plain"}},
		Body: io.NopCloser(strings.NewReader("refused by the test")),
	}
}
