package hub

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/krake-observer/krake-observer/internal/resync"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/kit"
)

// server is the API server that the tests of the resync share.
var server *rest.Config

func TestMain(m *testing.M) {
	os.Exit(cluster.RunTests(context.Background(), m, func(c *cluster.Cluster) { server = c.RESTConfig() }))
}

// A silent watch reports neither a new spec nor a new Application. A list finds both, and the
// loop gets them from then on.
func TestHubResync(t *testing.T) {
	for _, c := range []struct {
		name string
		// before and after run before and after the watch falls silent.
		before, after func(t *testing.T, live client.Client, name types.NamespacedName)
		missed        bool
	}{
		{"nothing has changed", create, nil, false},
		{"another spec", create, change, true},
		{"an Application that the cache has never seen", nil, create, true},
		{"another Application of the same name", create, recreate, true},
		{"an Application that is gone", create, remove, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			live, err := client.NewWithWatch(server, client.Options{})
			kit.Must(t, err)
			name := types.NamespacedName{Namespace: "default", Name: newName()}
			t.Cleanup(func() {
				_ = live.Delete(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}) // the cluster is removed, too
			})
			if c.before != nil {
				c.before(t, live, name)
			}
			silent := frozen(t, live, name)
			if c.after != nil {
				c.after(t, live, name)
			}
			h, notified := newResync(t, live, silent, name)
			kit.Must(t, h.check(t.Context(), h.grace))
			if got := len(*notified) > 0; got != c.missed {
				t.Errorf("notified %v, want %v", *notified, c.missed)
			}
			stored := &corev1.ConfigMap{}
			if err := live.Get(t.Context(), name, stored); err != nil && !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
			for range 2 {
				known, err := h.options.Store.newest(t.Context(), name)
				if stored.UID == "" {
					if !apierrors.IsNotFound(err) {
						t.Errorf("known is %v (%v), and it is gone", known, err)
					}
					continue
				}
				if err != nil || known.ResourceVersion != stored.ResourceVersion || known.UID != stored.UID {
					t.Errorf("known is %v (%v), want version %s", known, err, stored.ResourceVersion)
				}
			}
		})
	}
}

// An Application that was deleted since the list is not kept.
func TestHubResyncOfWhatIsGone(t *testing.T) {
	live, err := client.NewWithWatch(server, client.Options{})
	kit.Must(t, err)
	name := types.NamespacedName{Namespace: "default", Name: newName()}
	silent := frozen(t, live, name)
	create(t, live, name)
	h, _ := newResync(t, live, silent, name)
	kit.Must(t, h.check(t.Context(), h.grace))
	remove(t, live, name)
	kit.Must(t, h.check(t.Context(), h.grace))
	if known, err := h.options.Store.newest(t.Context(), name); !apierrors.IsNotFound(err) {
		t.Errorf("known is %v (%v)", known, err)
	}
}

// A replica does not act before it has current Applications: a former leader may have written
// since its watch fell silent. If the hub does not answer, in any of the namespaces, it is
// asked again.
func TestConfirm(t *testing.T) {
	live, err := client.NewWithWatch(server, client.Options{})
	kit.Must(t, err)
	name := types.NamespacedName{Namespace: "default", Name: newName()}
	create(t, live, name)
	silent := frozen(t, live, name)
	change(t, live, name)
	h, notified := newResync(t, live, silent, name)
	h.options.Namespaces, h.grace, h.confirmed = []string{"elsewhere", "default"}, time.Hour, make(chan struct{})
	failures := 2
	h.options.Cached = interceptor.NewClient(silent, interceptor.Funcs{
		List: func(ctx context.Context, cached client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
			if failures > 0 {
				failures--
				return errors.New("not now")
			}
			return cached.List(ctx, into, options...)
		},
	})
	kit.Must(t, h.confirm(t.Context()))
	select {
	case <-h.confirmed:
	default:
		t.Error("it does not say so")
	}
	stored := &corev1.ConfigMap{}
	kit.Must(t, live.Get(t.Context(), name, stored))
	known, err := h.options.Store.newest(t.Context(), name)
	if err != nil || known.ResourceVersion != stored.ResourceVersion {
		t.Errorf("known is %v (%v), want version %s", known, err, stored.ResourceVersion)
	}
	check.Equal(t, "somebody is notified", true, len(*notified) > 0)
	failures = 1
	ending, end := context.WithCancel(t.Context())
	end()
	h.confirmed = make(chan struct{})
	kit.Must(t, h.confirm(ending))
	select {
	case <-h.confirmed:
		t.Error("confirmed at the end")
	default:
	}
}

// A caller that knows of a change requests an immediate comparison. Several calls cause only
// one.
func TestResyncNow(t *testing.T) {
	h := &Resync{hurry: make(chan struct{}, 1)}
	h.Now()
	h.Now()
	check.Equal(t, "it begins", true, h.wait(t.Context()))
	ending, end := context.WithCancel(t.Context())
	end()
	check.Equal(t, "it begins twice, or at the end", false, h.wait(ending))
}

func newResync(t *testing.T, live, silent client.WithWatch, name types.NamespacedName) (h *Resync, notified *[]types.NamespacedName) {
	t.Helper()
	notified = &[]types.NamespacedName{}
	h, err := NewResync(ResyncOptions{
		Cluster: name.Name, Lists: metadata.NewForConfigOrDie(server), Cached: silent, Live: live,
		Store:  NewStore(silent, "ourselves", name.Name, noKeys, func() error { return nil }),
		Notify: func(name types.NamespacedName) { *notified = append(*notified, name) },
		Logger: logr.Discard(),
	})
	kit.Must(t, err)
	h.grace = 0
	return h, notified
}

// A hub that has older versions than before was restored. No replica goes on, whether it acts already or
// begins to.
func TestHubResyncOfARestoredHub(t *testing.T) {
	live, err := client.NewWithWatch(server, client.Options{})
	kit.Must(t, err)
	name := types.NamespacedName{Namespace: "default", Name: newName()}
	create(t, live, name)
	h, notified := newResync(t, live, live, name)
	h.options.Cached = interceptor.NewClient(live, interceptor.Funcs{
		List: func(ctx context.Context, cached client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
			err := cached.List(ctx, into, options...)
			for i := range into.(*corev1.ConfigMapList).Items {
				into.(*corev1.ConfigMapList).Items[i].ResourceVersion = "999999999"
			}
			return err
		},
	})
	check.Equal(t, "begins", resync.ErrRestored, h.Run(t.Context()), cmpopts.EquateErrors())
	check.Equal(t, "later", resync.ErrRestored, h.check(t.Context(), time.Millisecond), cmpopts.EquateErrors())
	check.Empty(t, "notified", *notified)
}

// frozen returns a client whose answers stay those of the present server.
func frozen(t *testing.T, live client.WithWatch, name types.NamespacedName) client.WithWatch {
	t.Helper()
	known := &corev1.ConfigMap{}
	missing := live.Get(t.Context(), name, known)
	return interceptor.NewClient(live, interceptor.Funcs{List: func(_ context.Context, _ client.WithWatch, into client.ObjectList, _ ...client.ListOption) error {
		if list, ok := into.(*corev1.ConfigMapList); ok && missing == nil {
			list.Items = []corev1.ConfigMap{*known}
		}
		return nil
	}, Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
		if cm, ok := into.(*corev1.ConfigMap); ok && missing == nil {
			known.DeepCopyInto(cm)
		}
		return missing
	}})
}

func create(t *testing.T, live client.Client, name types.NamespacedName) {
	t.Helper()
	err := live.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: name.Namespace, Name: name.Name, Labels: map[string]string{application.HolderLabel(name.Name): "true"},
	}})
	kit.Must(t, err)
}

func change(t *testing.T, live client.Client, name types.NamespacedName) {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	kit.Must(t, live.Patch(t.Context(), cm, client.RawPatch(types.MergePatchType, []byte(`{"data": {"spec.manifest": "[]"}}`))))
}

func remove(t *testing.T, live client.Client, name types.NamespacedName) {
	t.Helper()
	kit.Must(t, live.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}))
}

func recreate(t *testing.T, live client.Client, name types.NamespacedName) {
	t.Helper()
	remove(t, live, name)
	create(t, live, name)
}

func newName() string { return "resync-" + string(uuid.NewUUID())[:8] }
