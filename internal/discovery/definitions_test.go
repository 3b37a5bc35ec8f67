package discovery

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/kit"
)

// server is the API server that the tests of watches share.
var server *rest.Config

func TestMain(m *testing.M) {
	os.Exit(cluster.RunTests(context.Background(), m, func(c *cluster.Cluster) { server = c.RESTConfig() }))
}

const (
	patience = 30 * time.Second
	// haste is the factor by which the clock of live kinds is too fast.
	haste = 5
)

// live are kinds that follow the definitions of the API server.
type live struct {
	*Kinds

	woken chan types.NamespacedName
	log   chan string
}

// newLive follows the definitions as the user of the configuration, until the test ends.
func newLive(t *testing.T, config *rest.Config) *live {
	t.Helper()
	l := &live{woken: make(chan types.NamespacedName, 1000), log: make(chan string, 1000)}
	client, definitions := discovery.NewDiscoveryClientForConfigOrDie(config), metadata.NewForConfigOrDie(config)
	began := time.Now()
	l.Kinds = NewKinds(client, func(owner types.NamespacedName, after time.Duration) {
		time.AfterFunc(after/haste, func() { l.woken <- owner }) // like the queue
	}, func() time.Time { return began.Add(haste * time.Since(began)) }, logr.Discard())
	logger := funcr.New(func(_, text string) { l.log <- text }, funcr.Options{})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- (&Definitions{Client: definitions, Redefine: l.Redefine, Logger: logger}).Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l
}

// until asks again at each wake-up of the Application, until the answer is the wanted one.
func (l *live) until(t *testing.T, id manifest.ID, wanted func(clusterScoped bool, err error) bool) {
	t.Helper()
	deadline := time.After(patience)
	for {
		object, err := l.Locate(appName, id)
		if wanted(object.ClusterScoped, err) {
			return
		}
		select {
		case <-l.woken:
		case <-deadline:
			t.Fatalf("found %v, error %v", object, err)
		}
	}
}

// define creates a kind in a group of its own, and returns an object of it, and a function
// that removes the definition.
func define(t *testing.T, group string, scope string) (id manifest.ID, remove func()) {
	t.Helper()
	definitions := dynamic.NewForConfigOrDie(server).Resource(kit.Definitions)
	name := "widgets." + group
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"group": group, "scope": scope, "names": map[string]any{"plural": "widgets", "kind": "Widget"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{
				"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			}}},
		},
	}}
	kit.EventuallyNil(t, func() error { // one of the same name may still be in deletion
		_, err := definitions.Create(t.Context(), definition, metav1.CreateOptions{})
		return err
	})
	return manifest.ID{APIVersion: group + "/v1", Kind: "Widget", Namespace: "default", Name: "one"}, func() {
		if err := definitions.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}
}

type transportFunc func(*http.Request) (*http.Response, error)

func (f transportFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A kind is found when the API server serves it, and is gone after its removal. A kind that
// returns with another scope is found with that scope. The Application that asked is woken
// each time.
func TestKindsFollowTheAPIServer(t *testing.T) {
	l := newLive(t, server)
	group := kit.UniqueName("follow") + ".example.com"
	absent := manifest.ID{APIVersion: group + "/v1", Kind: "Widget", Namespace: "default", Name: "one"}
	missing := func(_ bool, err error) bool { return meta.IsNoMatchError(err) }
	l.until(t, absent, missing)
	widget, remove := define(t, group, "Namespaced")
	l.until(t, widget, func(clusterScoped bool, err error) bool { return err == nil && !clusterScoped })
	remove()
	l.until(t, widget, missing)
	_, remove = define(t, group, "Cluster")
	defer remove()
	l.until(t, widget, func(clusterScoped bool, err error) bool { return err == nil && clusterScoped })
}

// Without the right to watch definitions, the agent reports it once, and still ends when asked
// to. It finds a new kind some seconds later.
func TestDefinitionsForbidden(t *testing.T) {
	t.Parallel()
	nobody := rest.CopyConfig(server)
	nobody.Impersonate = rest.ImpersonationConfig{UserName: "nobody", Groups: []string{"system:authenticated"}}
	var requests atomic.Int32
	nobody.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transportFunc(func(r *http.Request) (*http.Response, error) {
			requests.Add(1)
			return next.RoundTrip(r)
		})
	})
	l := newLive(t, nobody)
	select {
	case text := <-l.log:
		if !strings.Contains(text, "forbidden") {
			t.Errorf("told: %s", text)
		}
	case <-time.After(patience):
		t.Fatal("nobody is told")
	}
	widget, remove := define(t, kit.UniqueName("forbidden")+".example.com", "Namespaced")
	defer remove()
	kit.EventuallyNil(t, func() error {
		_, err := l.Locate(appName, widget)
		return err
	})
	before := requests.Load()
	kit.EventuallyNil(t, func() error {
		if tries := requests.Load() - before; tries < 2 {
			return fmt.Errorf("the informer has tried %d times more", tries)
		}
		return nil
	})
	select {
	case text := <-l.log:
		t.Errorf("told once more: %s", text)
	default:
	}
}
