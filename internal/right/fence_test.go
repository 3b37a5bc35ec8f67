package right

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

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
	for _, c := range []struct {
		name  string
		right error
		want  []string // the methods that arrive
	}{
		{"with the right to act", nil, []string{"GET", "POST", "PUT", "PATCH", "DELETE", "DELETE"}},
		{"without it", ErrNotActing, []string{"GET"}},
		{"while the target is known not to answer", ErrTargetUnreachable, nil},
	} {
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

// granted is a right to act, or the errors that deny it.
type granted struct{ wait, target error }

func (g granted) Wait(ctx context.Context) error { return errors.Join(g.wait, ctx.Err()) }
func (g granted) Target() error                  { return g.target }
func (g granted) Owns(string) bool               { return true }
func (g granted) Grace() time.Duration           { return time.Minute }

// The right to act alone is not enough: the known Applications are first compared with the
// hub's.
func TestConfirmed(t *testing.T) {
	compared, asked := make(chan struct{}), make(chan struct{})
	ending, end := context.WithCancel(t.Context())
	waited := make(chan error, 1)
	go func() { waited <- Confirmed(askedFor{granted{}, asked}, compared).Wait(ending) }()
	<-asked
	end()
	if err := <-waited; err == nil {
		t.Error("it acts before it has compared")
	}
	close(compared)
	if err := Confirmed(granted{}, compared).Wait(t.Context()); err != nil {
		t.Errorf("it has compared, and does not act: %v", err)
	}
	refused := Confirmed(granted{wait: context.Canceled}, compared)
	if err := refused.Wait(t.Context()); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "canceled") {
		t.Errorf("it acts without the right: %v", err)
	}
}

// askedFor signals when a caller waits for the right.
type askedFor struct {
	granted

	asked chan<- struct{}
}

func (a askedFor) Wait(context.Context) error {
	close(a.asked)
	return nil
}

// Work beside the passes also starts only with the right to act.
func TestOnceActing(t *testing.T) {
	ran := false
	run := func(context.Context) error {
		ran = true
		return errors.New("it failed")
	}
	if err := OnceActing(granted{wait: context.Canceled}, run)(t.Context()); !errors.Is(err, context.Canceled) || ran {
		t.Errorf("without the right: it ran: %v, error %v", ran, err)
	}
	if err := OnceActing(granted{}, run)(t.Context()); err == nil || !ran {
		t.Errorf("with the right: it ran: %v, error %v", ran, err)
	}
}

// Running work gets a little time after the end of the agent, and no more.
func TestOutliving(t *testing.T) {
	ending, end := context.WithCancel(t.Context())
	longer, done := Outlive(ending, 50*time.Millisecond)
	defer done()
	end()
	check.Must(t, longer.Err())
	select {
	case <-longer.Done():
	case <-time.After(30 * time.Second):
		t.Error("it does not end")
	}
	longer, done = Outlive(t.Context(), time.Hour)
	done()
	if longer.Err() == nil {
		t.Error("it goes on when the pass is over")
	}
}
