package hub

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/krake-observer/krake-observer/internal/right"
	"github.com/krake-observer/krake-observer/internal/signature"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

var appName = types.NamespacedName{Namespace: "demo", Name: "app"}

func noKeys(context.Context) (signature.Keys, string, error) { return nil, "", nil }

// hub is a store, the API server behind it, and the cache between them.
type hub struct {
	*Store

	server client.WithWatch
	// cached is the content of a cache that is behind the server. failure is its error.
	cached  *corev1.ConfigMap
	failure error
	// haveRead is called after the read from the cache, before its answer arrives.
	haveRead func()
	// patches are the patches that were sent.
	patches []string
}

// newHub returns a hub with an admitted Application.
func newHub(t *testing.T) *hub {
	t.Helper()
	cm := kit.Application(appName.Namespace, appName.Name, "[]",
		kit.Data(application.MangledSchemaKey, "[]"), kit.Data(application.LastAppliedKey, "[]"), kit.Data("theirs", "x"))
	cm.UID, cm.Finalizers = "1", []string{"example.com/theirs"}
	cm.Labels = map[string]string{application.ClusterLabel: "local", application.HolderLabel("local"): "true"}
	h := &hub{server: fake.NewClientBuilder().WithObjects(cm).Build()}
	h.Store = NewStore(interceptor.NewClient(h.server, interceptor.Funcs{Get: h.get, Patch: h.patch}), "ourselves", "local", noKeys, func() error { return nil })
	return h
}

func (h *hub) get(ctx context.Context, server client.WithWatch, name client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if h.failure != nil {
		return h.failure
	}
	if cm, ok := object.(*corev1.ConfigMap); ok && h.cached != nil {
		h.cached.DeepCopyInto(cm)
		if h.haveRead != nil {
			h.haveRead()
		}
		return nil
	}
	return server.Get(ctx, name, object, options...)
}

func (h *hub) patch(ctx context.Context, server client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	body, err := patch.Data(object)
	if err != nil {
		return err
	}
	h.patches = append(h.patches, string(body))
	return server.Patch(ctx, object, patch, options...)
}

func (h *hub) stored(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	var cm corev1.ConfigMap
	kit.Must(t, h.server.Get(t.Context(), appName, &cm))
	return &cm
}

// freeze stops the updates of the cache.
func (h *hub) freeze(t *testing.T) {
	t.Helper()
	h.cached = h.stored(t)
}

func (h *hub) edit(t *testing.T, change func(cm *corev1.ConfigMap)) {
	t.Helper()
	cm := h.stored(t)
	change(cm)
	kit.Must(t, h.server.Update(t.Context(), cm))
}

func respec(cm *corev1.ConfigMap) { cm.Data[application.ManifestKey] = "" }

func (h *hub) mustGet(t *testing.T) *application.Application {
	t.Helper()
	app, err := h.Get(t.Context(), appName)
	if err != nil || app == nil {
		t.Fatalf("Application %v, error %v", app, err)
	}
	return app
}

func (h *hub) mustRun(t *testing.T, app *application.Application, state application.State) {
	t.Helper()
	app.Status.State = state
	kit.Must(t, h.Update(t.Context(), app))
}

// An Application is admitted if the present keys verify it, and not for longer.
func TestOnlyWhatIsSignedIsAdmitted(t *testing.T) {
	h := newHub(t)
	_, key, err := ed25519.GenerateKey(nil)
	kit.Must(t, err)
	signer := signature.NewSigner(key)
	name, text, err := signer.Public()
	kit.Must(t, err)
	keys, err := signature.ParseKeys(map[string][]byte{name: text})
	kit.Must(t, err)
	version := "1"
	h.keys = func(context.Context) (signature.Keys, string, error) { return keys, version, nil }
	isAdmitted := func(what string, want bool) {
		t.Helper()
		check.Equal(t, what, want, h.mustGet(t).NotAdmitted == nil)
	}
	isAdmitted("without a signature", false)
	h.edit(t, signer.Sign)
	isAdmitted("with one", true)
	keys, version = nil, "2"
	isAdmitted("after the key was removed", false)
	h.keys = func(context.Context) (signature.Keys, string, error) { return nil, "", context.DeadlineExceeded }
	if _, err := h.Get(t.Context(), appName); !errors.Is(err, context.DeadlineExceeded) {
		t.Error("without keys:", err)
	}
}

// Only an unknown Application counts as absent: an error is never taken for absence.
func TestGet(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(t *testing.T, h *hub)
		none bool
		err  error
	}{
		{"an Application", func(*testing.T, *hub) {}, false, nil},
		{"a plain ConfigMap", func(t *testing.T, h *hub) { h.edit(t, func(cm *corev1.ConfigMap) { cm.Annotations = nil }) }, true, nil},
		{"one that is gone", func(t *testing.T, h *hub) {
			h.edit(t, func(cm *corev1.ConfigMap) { cm.Finalizers = nil })
			kit.Must(t, h.server.Delete(t.Context(), h.stored(t)))
		}, true, nil},
		{"an unknown format", func(t *testing.T, h *hub) {
			h.edit(t, func(cm *corev1.ConfigMap) { cm.Annotations[application.FormatAnnotation] = "v9" })
		}, true, application.ErrFormat},
		{"a cache that does not answer", func(_ *testing.T, h *hub) { h.failure = context.DeadlineExceeded }, true, context.DeadlineExceeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHub(t)
			c.set(t, h)
			app, err := h.Get(t.Context(), appName)
			if (app == nil) != c.none || !errors.Is(err, c.err) {
				t.Errorf("Application %v, error %v", app, err)
			}
		})
	}
}

// What a reader changes of an Application is not what the next one reads.
func TestAReadApplicationBelongsToItsReader(t *testing.T) {
	h := newHub(t)
	h.mustRun(t, h.mustGet(t), application.StateRunning)
	for range 3 {
		app := h.mustGet(t)
		if app.Status.State != application.StateRunning || len(app.Inventory) > 0 {
			t.Fatalf("read: %+v", app)
		}
		app.Status.State, app.Inventory = application.StateFailed, []manifest.ID{{Kind: "Service"}}
	}
}

// A patch contains only changed fields of the agent. All other fields belong to others, and
// have versions of their own.
func TestPatchHasAgentKeysOnly(t *testing.T) {
	h := newHub(t)
	app := h.mustGet(t)
	version := app.Version
	app.Inventory = []manifest.ID{{APIVersion: "v1", Kind: "Service", Namespace: "demo", Name: "web"}}
	app.Finalized = true
	h.mustRun(t, app, application.StateRunning)

	want := []string{`{"data":{"inventory.local":"{\"objects\":[{\"apiVersion\":\"v1\",\"kind\":\"Service\",\"namespace\":\"demo\",\"name\":\"web\"}]}",` +
		`"status":"{\"state\":\"RUNNING\"}"},` +
		`"metadata":{"finalizers":["example.com/theirs","local.krake.dev/resources"],"labels":{"krake.dev/state":"RUNNING"},"resourceVersion":"` + version + `"}}`}
	check.Equal(t, "patches", want, h.patches)
	if cm := h.stored(t); cm.Data["theirs"] != "x" || app.Version != cm.ResourceVersion {
		t.Errorf("stored is %+v, the Application's version %s", cm, app.Version)
	}
}

// The patch is the same as that of the library for merge patches.
func TestMergePatch(t *testing.T) {
	stored := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7", Labels: map[string]string{"a": "1", "b": "2"}, Finalizers: []string{"x", "y"}},
		Data:       map[string]string{"a": "1", "b": "2", "empty": ""},
		BinaryData: map[string][]byte{"c": {0, 1}, "d": {2}},
	}
	for _, c := range []struct {
		name   string
		change func(cm *corev1.ConfigMap)
	}{
		{"a value of each", func(cm *corev1.ConfigMap) {
			cm.Labels["a"], cm.Data["a"], cm.BinaryData["c"], cm.Finalizers = "3", "3", []byte{0, 2}, []string{"x", "z"}
		}},
		{"one that is new, and empty", func(cm *corev1.ConfigMap) { cm.Data["new"], cm.BinaryData["new"], cm.Labels["new"] = "", []byte{}, "" }},
		{"one of each goes", func(cm *corev1.ConfigMap) {
			delete(cm.Labels, "a")
			delete(cm.Data, "empty")
			delete(cm.BinaryData, "d")
			cm.Finalizers = cm.Finalizers[1:]
		}},
		{"text becomes bytes", func(cm *corev1.ConfigMap) {
			delete(cm.Data, "a")
			cm.BinaryData["a"] = []byte{1}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			updated := stored.DeepCopy()
			c.change(updated)
			want, err := client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{}).Data(updated)
			kit.Must(t, err)
			got, err := json.Marshal(mergePatch(stored, updated))
			kit.Must(t, err)
			check.Equal(t, "patch", string(want), string(got))
		})
	}
	if patch := mergePatch(stored, stored.DeepCopy()); patch != nil {
		t.Errorf("nothing has changed, and the patch is %v", patch)
	}
}

// An unchanged Application is not written.
func TestUnchangedIsNotWritten(t *testing.T) {
	h := newHub(t)
	h.mustRun(t, h.mustGet(t), application.StateRunning)
	h.patches = nil
	for range 2 {
		h.mustRun(t, h.mustGet(t), application.StateRunning)
	}
	check.Empty(t, "patches", h.patches)
}

// The cache is behind for a moment after each write. Our own write is read nevertheless, and
// can be the basis of the next.
func TestOwnWritesAreRead(t *testing.T) {
	h := newHub(t)
	h.freeze(t)
	app := h.mustGet(t)
	app.Finalized = true
	h.mustRun(t, app, application.StateFailed)
	h.mustRun(t, app, application.StateRunning) // within one pass, with the result of the first write
	app = h.mustGet(t)
	if app.Status.State != application.StateRunning || !app.Finalized || app.Version != h.stored(t).ResourceVersion {
		t.Errorf("read: %+v", app)
	}
	h.mustRun(t, app, application.StateFailed)
	check.Equal(t, "state", string(application.StateFailed), h.stored(t).Labels[application.StateLabel])
}

// When the cache is newer than our write, its version is used, and our own is dropped.
func TestCacheCatchesUp(t *testing.T) {
	h := newHub(t)
	h.freeze(t)
	h.mustRun(t, h.mustGet(t), application.StateRunning)
	h.freeze(t)
	check.Equal(t, "state", application.StateRunning, h.mustGet(t).Status.State)
	check.Equal(t, "versions that are kept", 0, len(h.written))

	h.mustRun(t, h.mustGet(t), application.StateFailed)
	h.edit(t, respec)
	h.freeze(t)
	if app := h.mustGet(t); app.Spec.Manifest != "" || app.Status.State != application.StateFailed {
		t.Errorf("read: %+v", app)
	}
}

// A written version is stored until the cache has it, or a newer one.
func TestWrittenIsKeptUntilItIsCached(t *testing.T) {
	h := newHub(t)
	before := h.stored(t)
	h.freeze(t)
	h.mustRun(t, h.mustGet(t), application.StateRunning)
	h.RecordCached(before)
	check.Equal(t, "state after an older event", application.StateRunning, h.mustGet(t).Status.State)
	another := h.stored(t)
	another.UID = "2"
	h.RecordCached(another)
	check.Equal(t, "versions that are kept after an event of another Application", 1, len(h.written))
	h.RecordCached(h.stored(t))
	check.Equal(t, "versions that are kept", 0, len(h.written))
}

// The event for our own write may arrive while the older version is being read.
func TestOwnWritesAreReadWhileTheCacheCatchesUp(t *testing.T) {
	h := newHub(t)
	h.freeze(t)
	h.mustRun(t, h.mustGet(t), application.StateRunning)
	h.haveRead = func() { h.RecordCached(h.stored(t)) }
	check.Equal(t, "state", application.StateRunning, h.mustGet(t).Status.State)
}

// An error of the cache does not drop our written version. The cache's next answer is older,
// and has an outdated inventory.
func TestOwnWritesSurviveAFailure(t *testing.T) {
	h := newHub(t)
	h.freeze(t)
	h.mustRun(t, h.mustGet(t), application.StateRunning)
	h.failure = context.DeadlineExceeded
	if _, err := h.Get(t.Context(), appName); err == nil {
		t.Error("no error")
	}
	h.failure = nil
	check.Equal(t, "state", application.StateRunning, h.mustGet(t).Status.State)
}

// If an Application was deleted and created again, nothing of the former one is read.
func TestRecreatedApplication(t *testing.T) {
	h := newHub(t)
	h.mustRun(t, h.mustGet(t), application.StateRunning)
	another := h.stored(t)
	h.failure = apierrors.NewNotFound(corev1.Resource("configmaps"), appName.Name)
	if app, err := h.Get(t.Context(), appName); app != nil || err != nil {
		t.Errorf("Application %v, error %v", app, err)
	}
	check.Equal(t, "versions that are kept of what is gone", 0, len(h.written))
	h.failure = nil
	another.UID, another.ResourceVersion = "2", "5" // perhaps of a restored hub, whose versions start again
	delete(another.Data, application.StatusKey)
	h.cached = another
	if app := h.mustGet(t); app.UID != "2" || app.Status.State != "" {
		t.Errorf("read: %+v", app)
	}
}

// Another client changed the Application since it was read. The result of the former spec does
// not overwrite it, whether or not the cache has the change.
func TestUpdateOfAChangedApplication(t *testing.T) {
	for name, known := range map[string]bool{"the cache knows": true, "only the server knows": false} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			h.freeze(t)
			app := h.mustGet(t)
			h.edit(t, respec)
			before := h.stored(t)
			if known {
				h.freeze(t)
			}
			app.Status.State = application.StateRunning
			if err := h.Update(t.Context(), app); !apierrors.IsConflict(err) {
				t.Errorf("error is %v, want a conflict", err)
			}
			check.Equal(t, "stored", before, h.stored(t))
			h.freeze(t)
			if app := h.mustGet(t); app.Version != before.ResourceVersion || app.Status.State != "" {
				t.Errorf("read after it: %+v", app)
			}
		})
	}
}

// The last write removes finalizer and holder label, and thereby releases the Application.
func TestLastWrite(t *testing.T) {
	h := newHub(t)
	app := h.mustGet(t)
	app.Finalized = true
	h.mustRun(t, app, application.StateRunning)
	kit.Must(t, h.server.Delete(t.Context(), h.stored(t)))
	app = h.mustGet(t)
	if !app.Deleted || !app.Finalized {
		t.Fatalf("read: %+v", app)
	}
	app.Finalized = false
	h.mustRun(t, app, application.StateDeleting)
	cm := h.stored(t) // another finalizer blocks the deletion
	if _, holds := cm.Labels[application.HolderLabel("local")]; holds || len(cm.Finalizers) != 1 {
		t.Errorf("labels %v, finalizers %v", cm.Labels, cm.Finalizers)
	}
}

// If the hub accepts a request and does not answer, a pass waits for a few seconds, not until
// the connection is closed.
func TestUpdateIsBounded(t *testing.T) {
	h := newHub(t)
	app := h.mustGet(t)
	var left time.Duration
	h.client = interceptor.NewClient(h.server, interceptor.Funcs{
		Patch: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ client.Patch, _ ...client.PatchOption) error {
			deadline, _ := ctx.Deadline()
			left = time.Until(deadline)
			return context.DeadlineExceeded
		},
	})
	app.Status.State = application.StateRunning
	check.Equal(t, "update", context.DeadlineExceeded, h.Update(t.Context(), app), cmpopts.EquateErrors())
	if left <= 0 || left > hubPatience {
		t.Errorf("a write has %s, want no more than %s", left, hubPatience)
	}
}

// Without the right to act, the hub is not written either.
func TestUpdateWithoutTheRight(t *testing.T) {
	h := newHub(t)
	app := h.mustGet(t)
	h.may = func() error { return right.ErrNotActing }
	app.Status.State = application.StateRunning
	if err := h.Update(t.Context(), app); !errors.Is(err, right.ErrNotActing) || len(h.patches) > 0 {
		t.Errorf("updated: %v, with %v", err, h.patches)
	}
}

// A moved Application is read from the point of view of this cluster's agent. When its
// inventory is empty, its label is removed, and it leaves the cache. A copy from an earlier
// gap of the watch is not kept.
func TestLeaving(t *testing.T) {
	h := newHub(t)
	h.edit(t, func(cm *corev1.ConfigMap) {
		cm.Annotations[application.ClusterAnnotation] = "edge"
		cm.Labels[application.HolderLabel("edge")] = "true"
		cm.Finalizers = append(cm.Finalizers, application.Finalizer("local"))
	})
	h.saw(h.stored(t))
	h.failure = apierrors.NewNotFound(schema.GroupResource{}, appName.Name) // the cache does not have it
	app := h.mustGet(t)
	if app.IsCurrent() || !app.Finalized || app.Cluster != "edge" || app.Holder != "local" {
		t.Errorf("read as %+v", app)
	}
	app.Finalized = false
	kit.Must(t, h.Update(t.Context(), app))
	want := map[string]string{application.ClusterLabel: "local", application.HolderLabel("edge"): "true"}
	check.Equal(t, "labels", want, h.stored(t).Labels)
	if app, err := h.Get(t.Context(), appName); app != nil || err != nil {
		t.Errorf("it is still known: %v, error %v", app, err)
	}
}

// Changes by users wake the agent, and its own writes do not.
func TestIntentChanged(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(cm *corev1.ConfigMap)
		want   bool
	}{
		{"nothing, as a resync brings it", func(*corev1.ConfigMap) {}, false},
		{"the spec", func(cm *corev1.ConfigMap) { cm.Data[application.ManifestKey] = "{}" }, true},
		{"the schema", func(cm *corev1.ConfigMap) { cm.Data[application.ObserverSchemaKey] = "{}" }, true},
		{"an annotation, as the mode is one", func(cm *corev1.ConfigMap) { cm.Annotations["krake.dev/mode"] = "observe" }, true},
		{"the wish to be deleted", func(cm *corev1.ConfigMap) { cm.DeletionTimestamp = &metav1.Time{} }, true},
		{"another object of the same name", func(cm *corev1.ConfigMap) { cm.UID = "2" }, true},
		{"status", func(cm *corev1.ConfigMap) { cm.Data[application.StatusKey] = "{}" }, false},
		{"the webhook's documents", func(cm *corev1.ConfigMap) { cm.Data[application.LastAppliedKey] = "[]" }, false},
		{"the state's label", func(cm *corev1.ConfigMap) { cm.Labels = map[string]string{application.StateLabel: "RUNNING"} }, false},
		{"the finalizer", func(cm *corev1.ConfigMap) { cm.Finalizers = []string{application.Finalizer("local")} }, false},
		{"what is nobody's concern", func(cm *corev1.ConfigMap) { cm.Data["theirs"] = "x" }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := kit.Application("demo", "app", "[]")
			before.UID = "1"
			after := before.DeepCopy()
			c.change(after)
			update := event.UpdateEvent{ObjectOld: before, ObjectNew: after}
			check.Equal(t, "the agent is woken", c.want, IntentChanged("local", func(*corev1.ConfigMap) {}).Update(update))
		})
	}
}

// A replica is ready when it knows the Applications.
func TestReady(t *testing.T) {
	known := &ApplicationLister{}
	if known.Check(nil) == nil {
		t.Error("it is ready and knows nothing")
	}
	known.synced.Store(true)
	check.Must(t, known.Check(nil))
}
