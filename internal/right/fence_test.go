package right

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// methods returns an API server that records the methods of its requests.
func methods(t *testing.T) (*rest.Config, *[]string) {
	t.Helper()
	asked := &[]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.Method)
		w.Header().Set("Content-Type", "application/json")
		if _, err := w.Write([]byte(`{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}`)); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}, asked
}

// Without the right to act nothing is written, by any verb and by any client of the
// connection. Reads continue, unless the server is unreachable.
func TestFence(t *testing.T) {
	cases := []struct {
		name  string
		right error
		want  []string // the methods that arrive
	}{
		{"with the right to act", nil, []string{"GET", "POST", "PUT", "PATCH", "DELETE", "DELETE"}},
		{"without it", ErrNotActing, []string{"GET"}},
		{"while the target is known not to answer", ErrTargetUnreachable, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			config, asked := methods(t)
			behind := Fence(config, func() error { return c.right })
			behind.Impersonate.UserName = "system:serviceaccount:demo:deployer" // like a client of an account
			services := dynamic.NewForConfigOrDie(behind).Resource(kit.Services).Namespace("demo")
			service := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "web"}}}
			if _, err := services.Get(t.Context(), "web", metav1.GetOptions{}); (err == nil) != (len(c.want) > 0) {
				t.Errorf("read: %v", err)
			}
			_, createErr := services.Create(t.Context(), service, metav1.CreateOptions{})
			_, updateErr := services.Update(t.Context(), service, metav1.UpdateOptions{})
			_, patchErr := services.Patch(t.Context(), "web", types.JSONPatchType, []byte("[]"), metav1.PatchOptions{})
			deleteErr := services.Delete(t.Context(), "web", metav1.DeleteOptions{})
			deleteAllErr := services.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})
			for _, err := range []error{createErr, updateErr, patchErr, deleteErr, deleteAllErr} {
				check.Equal(t, "write", c.right, err, cmpopts.EquateErrors())
			}
			check.Equal(t, "asked", c.want, *asked, cmpopts.EquateEmpty())
		})
	}
}

// The right may end between two writes of one client.
func TestTheFenceLooksEachTime(t *testing.T) {
	config, asked := methods(t)
	var right error
	services := dynamic.NewForConfigOrDie(Fence(config, func() error { return right })).Resource(kit.Services)
	remove := func() error { return services.Delete(t.Context(), "web", metav1.DeleteOptions{}) }
	first := remove()
	right = ErrNotActing
	second := remove()
	right = nil
	third := remove()
	if first != nil || !errors.Is(second, ErrNotActing) || third != nil || len(*asked) != 2 {
		t.Errorf("%v, %v, %v, and %d requests", first, second, third, len(*asked))
	}
}
