package discovery

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/openapi"

	"github.com/krake-observer/krake-observer/internal/apitypes"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

// documents are what a target describes, and the paths of the requests to it.
type documents struct {
	// key is the key of the list in the only document, empty if there is no document.
	key     string
	failure error
	// broken is the error of the document itself.
	broken   error
	requests []string
	// meanwhile is called while the document is read.
	meanwhile func()
}

func (w *world) OpenAPIV3() openapi.Client { return &w.documents }

func (d *documents) Paths() (map[string]openapi.GroupVersion, error) {
	d.requests = append(d.requests, "index")
	if d.failure != nil || d.key == "" {
		return nil, d.failure
	}
	return map[string]openapi.GroupVersion{"apis/example.com/v1": document{d, d.key}}, nil
}

type document struct {
	*documents

	key string
}

func (d document) ServerRelativeURL() string { return "/openapi/v3/apis/example.com/v1?hash=" + d.key }

func (d document) Schema(string) ([]byte, error) {
	d.requests = append(d.requests, d.key)
	if d.meanwhile != nil {
		d.meanwhile()
	}
	return fmt.Appendf(nil, `{"components": {"schemas": {"Widget": {"type": "object", "x-kubernetes-group-version-kind":
		[{"group": "example.com", "version": "v1", "kind": "Widget"}], "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "parts": {"type": "array",
		"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [%q], "items": {"type": "object", "properties": {%q: {"type": "string"}}}}}}}}}`, d.key, d.key), d.broken
}

// checkRequests compares the requests since the last call.
func (w *world) checkRequests(t *testing.T, want string) {
	t.Helper()
	check.Equal(t, "requests", want, strings.Join(w.documents.requests, " "))
	w.documents.requests = nil
}

// checkKey compares the key of the list of a Widget, empty if its types are not known.
func (w *world) checkKey(t *testing.T, want string) *apitypes.Types {
	t.Helper()
	found := w.Types(appName, widget)
	got := ""
	if found != nil {
		for _, key := range found.Of(widget).Field("parts").Keys() {
			got += key.Name
		}
	}
	check.Equal(t, "key", want, got)
	return found
}

func newDescribed(key string) *world {
	w := newWorld(widgets(true))
	w.documents.key = key
	return w
}

// A document is read once. After ten minutes, its hash in the index is compared.
func TestTypesAreCached(t *testing.T) {
	w := newDescribed("name")
	first := w.checkKey(t, "name")
	w.checkRequests(t, "index name")
	w.time = w.time.Add(foundFor - time.Second)
	w.checkKey(t, "name")
	w.checkRequests(t, "")
	w.time = w.time.Add(time.Second)
	check.Equal(t, "the same document has the same types", true, w.checkKey(t, "name") == first)
	w.checkRequests(t, "index")
	w.documents.key = "id" // without an event
	w.time = w.time.Add(foundFor)
	w.checkKey(t, "id")
	w.checkRequests(t, "index id")
	w.expect(t)
}

// The types of built-in kinds are never read, nor those of groups without custom resources.
func TestTypesOfBuiltInKindsAreNotRead(t *testing.T) {
	w := newDescribed("name")
	for _, id := range []string{"apps/v1 Deployment", "v1 Node", "apps/v9 Deployment", "apiextensions.k8s.io/v1 CustomResourceDefinition"} {
		at := deployment
		at.APIVersion, at.Kind, _ = strings.Cut(id, " ")
		check.Equal(t, id+" has types", false, w.Types(appName, at) != nil)
	}
	w.checkRequests(t, "")
}

// When a definition of the group changes, its types are read again, also while the target may still
// describe the former ones. Those of other groups are not.
func TestTypesOfRedefinedKinds(t *testing.T) {
	w := newDescribed("name")
	w.mustLocate(t, widget)
	first := w.checkKey(t, "name")
	w.Redefine("gadgets.example.org")
	w.documents.requests = nil
	w.checkKey(t, "name")
	w.checkRequests(t, "")
	w.Redefine("widgets.example.com")
	if w.checkKey(t, "name") != first { // the target still describes it
		t.Error("the same document has other types")
	}
	w.checkRequests(t, "index")
	w.documents.key = "id"
	w.checkKey(t, "name")
	w.checkRequests(t, "")
	w.time = w.time.Add(settlingStep)
	w.checkKey(t, "id")
	w.checkRequests(t, "index id")
	w.time = w.time.Add(settling)
	w.checkKey(t, "id")
	w.checkRequests(t, "index")
	w.time = w.time.Add(foundFor - time.Second)
	w.checkKey(t, "id")
	w.checkRequests(t, "")
}

// Types that were read while a definition changed are read again.
func TestTypesThatChangeWhileTheyAreRead(t *testing.T) {
	w := newDescribed("name")
	w.mustLocate(t, widget)
	w.documents.meanwhile = func() {
		w.documents.key, w.documents.meanwhile = "id", nil
		w.Redefine("widgets.example.com")
	}
	w.checkKey(t, "name")
	w.checkKey(t, "id")
}

// Types that no Application needs are forgotten when their definition changes.
func TestUnneededTypesAreForgotten(t *testing.T) {
	w := newDescribed("name")
	w.mustLocate(t, widget)
	w.checkKey(t, "name")
	w.Forget(appName)
	w.Redefine("widgets.example.com")
	check.Equal(t, "types that are kept", 0, len(w.defined))
}

// If types cannot be read, the target is asked again after pauses that become longer, and the Application then looks
// again. It is logged once. Known types stay.
func TestTypesThatCannotBeRead(t *testing.T) {
	var logged []string
	w := newDescribed("name")
	w.logger = funcr.New(func(_, line string) { logged = append(logged, line) }, funcr.Options{})
	for _, set := range []func(error){
		func(err error) { w.documents.failure = err },
		func(err error) { w.documents.broken = err },
	} {
		set(errors.New("refused"))
		w.defined, logged = map[gvr.GroupVersion]definedTypes{}, nil
		pause := unknownFor
		for range 10 {
			w.documents.requests = nil
			w.checkKey(t, "")
			w.checkKey(t, "")
			w.expect(t, notice{"app", pause}, notice{"app", pause})
			check.Equal(t, "requests", 1, strings.Count(strings.Join(w.documents.requests, " "), "index"))
			w.time = w.time.Add(pause)
			pause = min(2*pause, foundFor)
		}
		if len(logged) != 1 || !strings.Contains(logged[0], "example.com/v1") || !strings.Contains(logged[0], "refused") {
			t.Errorf("logged: %q", logged)
		}
		set(nil)
		w.checkKey(t, "name")
		w.expect(t)
		set(errors.New("refused"))
		w.documents.key = "id"
		w.time = w.time.Add(foundFor)
		w.checkKey(t, "name")
		w.expect(t, notice{"app", unknownFor})
		w.documents.key = "name"
		set(nil)
	}
}

// A kind is served before it is described. Its types are read as soon as they are there.
func TestTypesOfANewKind(t *testing.T) {
	w := newDescribed("")
	w.mustLocate(t, widget)
	w.Redefine("widgets.example.com")
	w.notices = nil
	w.checkKey(t, "")
	w.expect(t, notice{"app", settlingStep})
	w.documents.key = "name"
	w.time = w.time.Add(settlingStep)
	w.checkKey(t, "name")
	w.expect(t)
}

// Many passes at once wait for one request.
func TestTypesAreReadOnceForAll(t *testing.T) {
	w := newDescribed("name")
	var passes sync.WaitGroup
	for range 8 {
		passes.Go(func() { w.checkKey(t, "name") })
	}
	passes.Wait()
	w.checkRequests(t, "index name")
}

// An Application whose kind no document describes has no types.
func TestReadTypes(t *testing.T) {
	w := newDescribed("name")
	found, err := ReadTypes(w.OpenAPIV3(), widget)
	check.Must(t, err)
	check.Equal(t, "keys", []schema.Key{{Name: "name", KeepsZero: true}}, found.Of(widget).Field("parts").Keys())
	if found, err := ReadTypes(w.OpenAPIV3(), deployment); found != nil || err != nil {
		t.Errorf("a Deployment has types %v, error %v", found, err)
	}
	w.documents.key = ""
	if _, err := ReadTypes(w.OpenAPIV3(), widget); err == nil || !strings.Contains(err.Error(), "/openapi/v3 has no apis/example.com/v1") {
		t.Errorf("error %v", err)
	}
}
