package habitat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/habitat"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/kit"
)

const shop = "shop"

// world is an API server with a process. The caches of the process are behind until they see.
// Its writes and Events are recorded.
type world struct {
	*shared

	t      testing.TB
	scheme *runtime.Scheme
	server client.WithWatch
	// seen are the caches.
	seen client.WithWatch
	// writes are the writes of the process: "patch ConfigMap habitat-greeter".
	writes []string
	// told are its Events: "Warning Overwritten".
	told []string
	// refuse, if set, makes the API server answer a write of the process with an error.
	refuse func(verb string, object client.Object) error
	// uids counts the UIDs that the API server has assigned.
	uids int
}

func newWorld(t testing.TB, objects ...client.Object) *world {
	t.Helper()
	w := &world{t: t, scheme: newScheme()}
	w.server = w.apiServer()
	for _, object := range objects {
		w.have(object)
	}
	w.shared = &shared{
		client: process{w.server, w}, live: w.server, recorder: recorder{listener{w}},
		cluster: application.LocalCluster, filesImage: habitat.DefaultFilesImage,
		now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) },
	}
	w.see()
	return w
}

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(scheme))
	utilruntime.Must(appsv1.AddToScheme(scheme))
	scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(kind.GroupVersion().WithKind(kind.Kind+"List"), &unstructured.UnstructuredList{})
	return scheme
}

// apiServer assigns UIDs, and respects preconditions, which the fake client does not.
func (w *world) apiServer() client.WithWatch {
	server := fake.NewClientBuilder().WithScheme(w.scheme).WithStatusSubresource(newHabitat()).Build()
	return interceptor.NewClient(server, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			if object.GetUID() == "" {
				w.uids++
				object.SetUID(types.UID(fmt.Sprintf("uid-%d", w.uids)))
			}
			return c.Create(ctx, object, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			var wanted client.DeleteOptions
			wanted.ApplyOptions(options)
			live, ok := object.DeepCopyObject().(client.Object)
			if !ok {
				return errors.New("no object")
			}
			if err := c.Get(ctx, client.ObjectKeyFromObject(object), live); err != nil {
				return err
			}
			if p := wanted.Preconditions; p != nil && p.UID != nil && *p.UID != live.GetUID() {
				return apierrors.NewConflict(schema.GroupResource{}, object.GetName(), errors.New("another UID"))
			}
			return c.Delete(ctx, object, options...)
		},
	})
}

// process is the client of the controllers: it reads from the caches.
type process struct {
	client.WithWatch

	w *world
}

func (p process) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	return p.w.seen.Get(ctx, key, object, options...)
}

func (p process) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return p.w.seen.List(ctx, list, options...)
}

func (p process) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	return p.write("create", object, func() error { return p.WithWatch.Create(ctx, object, options...) })
}

func (p process) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	return p.write("patch", object, func() error { return p.WithWatch.Patch(ctx, object, patch, options...) })
}

func (p process) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	return p.write("delete", object, func() error { return p.WithWatch.Delete(ctx, object, options...) })
}

func (p process) Update(context.Context, client.Object, ...client.UpdateOption) error {
	return errors.New("nothing is ever updated as a whole")
}

func (p process) Status() client.SubResourceWriter { return statusWriter{p.WithWatch.Status(), p} }

type statusWriter struct {
	client.SubResourceWriter

	p process
}

func (s statusWriter) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
	return s.p.write("status", object, func() error { return s.SubResourceWriter.Patch(ctx, object, patch, options...) })
}

func (p process) write(verb string, object client.Object, do func() error) error {
	name := fmt.Sprintf("%s %s %s", verb, p.w.kindOf(object), object.GetName())
	if p.w.refuse != nil {
		if err := p.w.refuse(verb, object); err != nil {
			return err
		}
	}
	err := do()
	if err == nil {
		p.w.writes = append(p.w.writes, name)
	}
	return err
}

func (w *world) kindOf(object client.Object) string {
	gvks, _, err := w.scheme.ObjectKinds(object)
	if err != nil {
		return err.Error()
	}
	return gvks[0].Kind
}

type listener struct{ w *world }

func (l listener) Eventf(_, _ runtime.Object, eventType, reason, _, note string, arguments ...any) {
	l.w.told = append(l.w.told, strings.Join([]string{eventType, reason, fmt.Sprintf(note, arguments...)}, " "))
}

// The lists of all objects, and of those in the caches.
func lists() []client.ObjectList {
	return []client.ObjectList{newHabitatList(), &corev1.ConfigMapList{}, &corev1.PodList{}, &appsv1.StatefulSetList{}}
}

// see updates the caches of these lists, or all caches. They hold objects with the label, and
// Habitats.
func (w *world) see(which ...client.ObjectList) {
	w.t.Helper()
	isAsked := func(list client.ObjectList) bool {
		return len(which) == 0 || slices.ContainsFunc(which, func(asked client.ObjectList) bool {
			return fmt.Sprintf("%T", asked) == fmt.Sprintf("%T", list)
		})
	}
	builder := fake.NewClientBuilder().WithScheme(w.scheme)
	for _, list := range lists() {
		from := w.seen
		if isAsked(list) {
			from = w.server
		}
		kit.Must(w.t, from.List(w.t.Context(), list))
		kit.Must(w.t, meta.EachListItem(list, func(item runtime.Object) error {
			object, ok := item.(client.Object)
			if !ok {
				return fmt.Errorf("%T is no object", item)
			}
			if isSelected(object) {
				builder.WithObjects(object)
			}
			return nil
		}))
	}
	w.seen = builder.Build()
}

// isSelected reports whether the caches select an object. It reduces a Pod to the cached part.
func isSelected(object client.Object) bool {
	switch object := object.(type) {
	case *unstructured.Unstructured, *corev1.Secret:
		return true
	case *corev1.Pod:
		trimmed, err := trimPod(object)
		if pod, ok := trimmed.(*corev1.Pod); err == nil && ok {
			pod.Finalizers = object.Finalizers // the fake API server accepts no deletion timestamp without
			pod.DeepCopyInto(object)
		}
	}
	return object.GetLabels()[habitat.Label] == "true"
}

// The actions of users.

func (w *world) have(object client.Object) {
	w.t.Helper()
	object.SetResourceVersion("")
	kit.Must(w.t, w.server.Create(w.t.Context(), object))
}

func (w *world) habitat(name, text string) *unstructured.Unstructured {
	w.t.Helper()
	live := newHabitat()
	kit.Must(w.t, yaml.Unmarshal([]byte(text), &live.Object))
	live.SetGroupVersionKind(kind)
	live.SetNamespace(shop)
	live.SetName(name)
	live.SetGeneration(1)
	w.have(live)
	return live
}

// edit changes an object, and the generation of a Habitat whose spec changes.
func edit[T client.Object](w *world, object T, name string, change func(T)) {
	w.t.Helper()
	kit.Must(w.t, w.server.Get(w.t.Context(), types.NamespacedName{Namespace: shop, Name: name}, object))
	change(object)
	if _, ok := any(object).(*unstructured.Unstructured); ok {
		object.SetGeneration(object.GetGeneration() + 1)
	}
	set, ok := any(object).(*appsv1.StatefulSet)
	if !ok {
		kit.Must(w.t, w.server.Update(w.t.Context(), object))
		return
	}
	status := set.Status
	kit.Must(w.t, w.server.Update(w.t.Context(), set))
	set.Status = status
	kit.Must(w.t, w.server.Status().Update(w.t.Context(), set))
}

func (w *world) gone(object client.Object, name string) {
	w.t.Helper()
	object.SetNamespace(shop)
	object.SetName(name)
	kit.Must(w.t, w.server.Delete(w.t.Context(), object))
}

// live returns the present object, if it exists.
func live[T client.Object](w *world, object T, name string) (found T, ok bool) {
	w.t.Helper()
	err := w.server.Get(w.t.Context(), types.NamespacedName{Namespace: shop, Name: name}, object)
	if err != nil && !apierrors.IsNotFound(err) {
		w.t.Fatal(err)
	}
	return object, err == nil
}

func (w *world) statusOf(name string) Status {
	w.t.Helper()
	found, ok := live(w, newHabitat(), name)
	if !ok {
		w.t.Fatalf("there is no Habitat %s", name)
	}
	return statusOf(found)
}

// The controllers, for one Habitat, one namespace, or one StatefulSet.

func (w *world) carry(name string) (reconcile.Result, error) {
	var last reconcile.Result
	for _, v := range w.versions() {
		result, err := v.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: shop, Name: name}})
		if err != nil {
			return result, err
		}
		if result != (reconcile.Result{}) {
			last = result
		}
	}
	return last, nil
}

func (w *world) ring() (reconcile.Result, error) {
	return (&rings{w.shared}).Reconcile(w.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: shop}})
}

func (w *world) choose() (reconcile.Result, error) {
	return (&peers{shared: w.shared}).Reconcile(w.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: shop}})
}

func (w *world) replacePods(name string) (reconcile.Result, error) {
	return (&replacements{w.shared}).Reconcile(w.t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: shop, Name: name}})
}

func (w *world) must(_ reconcile.Result, err error) {
	w.t.Helper()
	kit.Must(w.t, err)
}

// mustCarry updates the caches, and runs the controller of a Habitat.
func (w *world) mustCarry(name string) {
	w.t.Helper()
	w.see()
	w.must(w.carry(name))
}

// agent acts as the agent: it applies the objects of Applications, and deletes them with their
// Application.
func (w *world) agent() {
	w.t.Helper()
	var found corev1.ConfigMapList
	kit.Must(w.t, w.server.List(w.t.Context(), &found, client.InNamespace(shop)))
	for i := range found.Items {
		cm := &found.Items[i]
		if cm.Annotations[application.FormatAnnotation] == "" || cm.DeletionTimestamp != nil {
			continue
		}
		documents, err := manifest.Decode([]byte(cm.Data[application.ManifestKey]))
		kit.Must(w.t, err)
		for _, document := range documents {
			wanted, ok := document.(map[string]any)
			if !ok {
				w.t.Fatalf("%s: no object: %v", cm.Name, document)
			}
			w.apply(cm, wanted)
		}
	}
}

func (w *world) apply(cm *corev1.ConfigMap, wanted map[string]any) {
	w.t.Helper()
	id, err := manifest.Identify(wanted)
	kit.Must(w.t, err)
	marked := application.Marks(client.ObjectKeyFromObject(cm), cm.UID, id).On(wanted)
	object := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(marked)}
	former := &unstructured.Unstructured{}
	former.SetGroupVersionKind(object.GroupVersionKind())
	err = w.server.Get(w.t.Context(), client.ObjectKeyFromObject(object), former)
	switch {
	case apierrors.IsNotFound(err):
		object.SetGeneration(1)
		kit.Must(w.t, w.server.Create(w.t.Context(), object))
	case err != nil:
		w.t.Fatal(err)
	case former.GetAnnotations()[application.OwnerUIDAnnotation] != string(cm.UID) || id.Kind != "ConfigMap":
		object.SetResourceVersion(former.GetResourceVersion())
		object.SetUID(former.GetUID())
		object.SetGeneration(former.GetGeneration() + 1)
		kit.Must(w.t, w.server.Update(w.t.Context(), object))
	}
}

func pod(name, of, address string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: name, Labels: map[string]string{habitat.Label: "true", habitat.NameLabel: of}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address, StartTime: &metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

const greeter = `
customVersion: v1beta2
spec: {v1beta2: {image: greeter:1, count: 2, service: {name: greeter, topology: standalone}}}`

// crew is a Habitat whose Pods are replaced together.
const crew = `
customVersion: v1beta2
spec: {v1beta2: {image: crew:1, count: 3, updateStrategy: OnDelete, service: {name: crew, topology: leader}}}`
