package habitat

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/habitat"
	"github.com/krake-observer/krake-observer/test/kit"
)

// carried returns a world in which a Habitat has its StatefulSet, and Pods of the revision
// named old. The caches are current.
func carried(t *testing.T, name, text string) *world {
	t.Helper()
	w := newWorld(t)
	w.habitat(name, text)
	w.mustCarry(name)
	w.must(w.ring())
	w.agent()
	w.revise(name, "old")
	w.see()
	w.writes, w.told = nil, nil
	return w
}

// revise sets the StatefulSet's revision as its controller does for the present template.
func (w *world) revise(name, revision string) {
	w.t.Helper()
	edit(w, &appsv1.StatefulSet{}, name, func(set *appsv1.StatefulSet) {
		set.Status.ObservedGeneration = set.Generation
		set.Status.UpdateRevision = revision
	})
}

func (w *world) member(name, of, address, revision string) {
	w.t.Helper()
	set, ok := live(w, &appsv1.StatefulSet{}, of)
	if !ok {
		w.t.Fatalf("there is no StatefulSet %s", of)
	}
	w.have(pod(name, of, address, func(p *corev1.Pod) {
		p.Labels[appsv1.ControllerRevisionHashLabelKey] = revision
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"))}
	}))
}

func (w *world) image(name, image string) {
	w.t.Helper()
	edit(w, newHabitat(), name, func(h *unstructured.Unstructured) {
		kit.Must(w.t, unstructured.SetNestedField(h.Object, image, "spec", "v1beta2", "image"))
	})
}

// wrote asserts the writes since its last call.
func (w *world) wrote(wanted ...string) {
	w.t.Helper()
	if !slices.Equal(w.writes, wanted) {
		w.t.Fatalf("wrote %q, want %q", w.writes, wanted)
	}
	w.writes = nil
}

// A new image replaces all Pods of a group at once, and no Pod that already has it.
func TestReplacesOutdated(t *testing.T) {
	w := carried(t, "crew", crew)
	w.member("crew-0", "crew", "10.0.0.1", "old")
	w.member("crew-1", "crew", "10.0.0.2", "old")
	w.image("crew", "crew:2")
	w.mustCarry("crew")
	w.agent()
	w.see()
	w.writes = nil
	w.must(w.replacePods("crew"))
	w.wrote() // the StatefulSet's controller has not seen it yet
	w.revise("crew", "new")
	w.member("crew-2", "crew", "10.0.0.3", "new")
	w.see()
	w.must(w.replacePods("crew"))
	w.wrote("delete Pod crew-0", "delete Pod crew-1")
}

// The watch of Pods may be ahead of that of StatefulSets. A Pod of the new revision, which
// replaces one that a user deleted, is not taken for an outdated one.
func TestKeepsPodsOfARevisionThatWasNotSeen(t *testing.T) {
	w := carried(t, "crew", crew)
	w.image("crew", "crew:2")
	edit(w, &corev1.ConfigMap{}, "habitat-crew", func(cm *corev1.ConfigMap) {
		h, refusals := habitat.Parse(must(t, newHabitat(), w, "crew").Object)
		if len(refusals) > 0 {
			t.Fatal(refusals)
		}
		next, err := w.applicationOf(h)
		kit.Must(t, err)
		cm.Data = next.Data
	})
	edit(w, &appsv1.StatefulSet{}, "crew", func(set *appsv1.StatefulSet) {
		set.Generation++
		set.Spec.Template.Spec.Containers[0].Image = "crew:2"
	})
	w.revise("crew", "new")
	w.member("crew-0", "crew", "10.0.0.1", "new")
	w.see(&corev1.PodList{}) // no other list
	w.must(w.replacePods("crew"))
	w.wrote()
}

func must[T client.Object](t *testing.T, object T, w *world, name string) T {
	t.Helper()
	found, ok := live(w, object, name)
	if !ok {
		t.Fatalf("there is no %T %s", object, name)
	}
	return found
}

// Another form of a value on the API server is no reason to keep Pods of an old revision.
func TestReplacesWhateverTheFormOfValues(t *testing.T) {
	for what, env := range map[string]string{
		"an empty value":              `{name: A, value: ""}`,
		"an empty value and a source": `{name: A, value: "", valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}`,
		"a number as divisor":         `{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1}}}`,
		"an unusual divisor":          `{name: A, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1024Ki}}}`,
	} {
		t.Run(what, func(t *testing.T) {
			w := carried(t, "crew", `
customVersion: v1beta2
spec: {v1beta2: {image: crew:1, count: 3, updateStrategy: OnDelete, env: [`+env+`], service: {name: crew, topology: leader}}}`)
			// In the form that the API server writes.
			edit(w, &appsv1.StatefulSet{}, "crew", func(*appsv1.StatefulSet) {})
			w.member("crew-0", "crew", "10.0.0.1", "older")
			w.see()
			w.must(w.replacePods("crew"))
			w.wrote("delete Pod crew-0")
		})
	}
}

// A StatefulSet that is seen before its Habitat is checked again, because no further event may
// come.
func TestLooksAgainAtWhatIsNotSettled(t *testing.T) {
	w := carried(t, "crew", crew)
	w.member("crew-0", "crew", "10.0.0.1", "old")
	w.image("crew", "crew:2")
	edit(w, &appsv1.StatefulSet{}, "crew", func(set *appsv1.StatefulSet) {
		set.Generation++
		set.Spec.Template.Spec.Containers[0].Image = "crew:2"
	})
	w.revise("crew", "new")
	w.see(&appsv1.StatefulSetList{}, &corev1.PodList{})
	result, err := w.replacePods("crew")
	kit.Must(t, err)
	w.wrote()
	if result.RequeueAfter == 0 {
		t.Error("nobody looks again")
	}
}

// A StatefulSet that does not belong to the Application is foreign, and so are its Pods. Without a Habitat, or its
// Application, no Pod is deleted either.
func TestLeavesPodsOfOthers(t *testing.T) {
	set := func(change func(set *appsv1.StatefulSet)) func(*world) {
		return func(w *world) { edit(w, &appsv1.StatefulSet{}, "crew", change) }
	}
	pod := func(change func(p *corev1.Pod)) func(*world) {
		return func(w *world) { edit(w, &corev1.Pod{}, "crew-0", change) }
	}
	for what, change := range map[string]func(*world){
		"without marks":              set(func(set *appsv1.StatefulSet) { set.Annotations = nil }),
		"of a former Application":    set(func(set *appsv1.StatefulSet) { set.Annotations[application.OwnerUIDAnnotation] = "former" }),
		"of another Application":     set(func(set *appsv1.StatefulSet) { set.Annotations[application.OwnerAnnotation] = "shop/other" }),
		"with an edit by hand":       set(func(set *appsv1.StatefulSet) { set.Spec.Template.Spec.Containers[0].Image = "mine" }),
		"not seen by its controller": set(func(set *appsv1.StatefulSet) { set.Generation++ }),
		"without an update revision": set(func(set *appsv1.StatefulSet) { set.Status.UpdateRevision = "" }),
		"with another updateStrategy": set(func(set *appsv1.StatefulSet) {
			set.Spec.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
		}),
		"Pod of another controller": pod(func(p *corev1.Pod) { p.OwnerReferences[0].UID = "other" }),
		"Pod of no controller":      pod(func(p *corev1.Pod) { p.OwnerReferences = nil }),
		"Pod of another Habitat":    pod(func(p *corev1.Pod) { p.Labels[habitat.NameLabel] = "other" }),
		"Pod that is going": func(w *world) {
			pod(func(p *corev1.Pod) { p.Finalizers = []string{"example.org/stays"} })(w)
			w.gone(&corev1.Pod{}, "crew-0")
		},
		"Pod of the wanted revision": pod(func(p *corev1.Pod) { p.Labels[appsv1.ControllerRevisionHashLabelKey] = "old" }),
		"without the Application":    func(w *world) { w.gone(&corev1.ConfigMap{}, "habitat-crew") },
		"without both": func(w *world) {
			w.gone(&corev1.ConfigMap{}, "habitat-crew")
			w.gone(newHabitat(), "crew")
		},
	} {
		t.Run(what, func(t *testing.T) {
			w := carried(t, "crew", crew)
			w.member("crew-0", "crew", "10.0.0.1", "older")
			change(w)
			w.see()
			w.must(w.replacePods("crew"))
			w.wrote()
		})
	}
}

// A newer Pod of the same name is not the one that was checked.
func TestDeletesNoOtherPodOfTheName(t *testing.T) {
	w := carried(t, "crew", crew)
	w.member("crew-0", "crew", "10.0.0.1", "older")
	w.see()
	w.gone(&corev1.Pod{}, "crew-0")
	w.member("crew-0", "crew", "10.0.0.2", "old")
	w.must(w.replacePods("crew"))
	w.wrote()
}

// A Habitat that was deleted and created again waits until its former Application is gone.
func TestWaitsForTheFormerApplication(t *testing.T) {
	w := carried(t, "greeter", greeter)
	edit(w, &corev1.ConfigMap{}, "habitat-greeter", func(cm *corev1.ConfigMap) { cm.Finalizers = []string{application.Finalizer("local")} })
	w.gone(newHabitat(), "greeter")
	w.habitat("greeter", greeter)
	for _, going := range []bool{false, true} {
		if going {
			w.gone(&corev1.ConfigMap{}, "habitat-greeter")
		}
		w.mustCarry("greeter")
		w.checkState("greeter", application.StateDeleting)
	}
	edit(w, &corev1.ConfigMap{}, "habitat-greeter", func(cm *corev1.ConfigMap) { cm.Finalizers = nil })
	w.see()
	w.writes = nil
	w.must(w.carry("greeter"))
	w.wrote("create ConfigMap habitat-greeter", "status Habitat greeter")
	owner := metav1.GetControllerOf(must(t, &corev1.ConfigMap{}, w, "habitat-greeter"))
	if live := must(t, newHabitat(), w, "greeter"); owner == nil || owner.UID != live.GetUID() {
		t.Errorf("owner %v, want UID %s", owner, live.GetUID())
	}
}

// A deleted Habitat that is still in the cache leaves no objects behind: they have its UID,
// and are garbage collected.
func TestGoneBehindTheCache(t *testing.T) {
	w := newWorld(t)
	former := w.habitat("greeter", greeter)
	w.see()
	w.gone(newHabitat(), "greeter")
	w.habitat("greeter", greeter)
	w.must(w.carry("greeter"))
	cm := must(t, &corev1.ConfigMap{}, w, "habitat-greeter")
	if owner := metav1.GetControllerOf(cm); owner == nil || owner.UID != former.GetUID() {
		t.Fatalf("owner %v", owner)
	}
	w.mustCarry("greeter")
	w.checkState("greeter", application.StateDeleting)
}

// A user has replaced the Application by a ConfigMap, and the cache does not show it: the
// ConfigMap is not written.
func TestReplacedBehindTheCache(t *testing.T) {
	w := carried(t, "greeter", greeter)
	w.image("greeter", "greeter:2")
	w.habitat("other", greeter)
	w.see(newHabitatList())
	for _, name := range []string{"habitat-greeter", peersApplication} {
		w.gone(&corev1.ConfigMap{}, name)
		w.have(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: name}})
		for range 5 { // the fake API server counts versions for each object
			edit(w, &corev1.ConfigMap{}, name, func(cm *corev1.ConfigMap) { cm.Labels = map[string]string{"team": cm.ResourceVersion} })
		}
	}
	w.must(w.carry("greeter"))
	w.must(w.ring())
	for _, name := range []string{"habitat-greeter", peersApplication} {
		if cm := must(t, &corev1.ConfigMap{}, w, name); cm.Data != nil || cm.OwnerReferences != nil {
			t.Errorf("%v", cm)
		}
	}
}

// Nothing is written while the peer file, or its Application, is being deleted. Each Habitat
// says what it waits for.
func TestWaitsForPeersThatAreGoing(t *testing.T) {
	for _, name := range []string{peersApplication, peerFile} {
		w := carried(t, "greeter", greeter)
		w.have(pod("greeter-0", "greeter", "10.0.0.1"))
		edit(w, &corev1.ConfigMap{}, name, func(cm *corev1.ConfigMap) { cm.Finalizers = []string{"example.org/stays"} })
		w.gone(&corev1.ConfigMap{}, name)
		w.see()
		w.must(w.ring())
		w.must(w.choose())
		w.wrote()
		w.mustCarry("greeter")
		if c := w.condition(peerFileCondition, "greeter"); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, name+" is being deleted") {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// A file that has changed since it was read is not written.
func TestPeerFileThatHasChangedSince(t *testing.T) {
	w := carried(t, "greeter", greeter)
	w.have(pod("greeter-0", "greeter", "10.0.0.1"))
	w.see()
	edit(w, &corev1.ConfigMap{}, habitat.PeerFile, func(cm *corev1.ConfigMap) { cm.Labels["touched"] = "yes" })
	w.must(w.choose())
	w.wrote()
	w.see()
	w.must(w.choose())
	w.wrote("patch ConfigMap peer-watch-file")
}

// The owners of the peer file's Application are the existing Habitats.
func TestOwners(t *testing.T) {
	w := newWorld(t)
	w.habitat("b", greeter)
	a := w.habitat("a", "spec: {image: a:1, service: {name: a, topology: standalone}}")
	w.habitat("future", "customVersion: v9\nspec: {}")
	going := w.habitat("going", greeter)
	going.SetFinalizers([]string{"example.org/stays"})
	kit.Must(t, w.server.Update(t.Context(), going))
	w.gone(newHabitat(), "going")
	w.see()
	w.must(w.ring())
	w.wrote("create ConfigMap habitat-peers")
	wantOwners(t, w, "a", "b")
	w.see()
	w.must(w.ring())
	w.wrote()

	// One is deleted and created again: it is another one.
	w.gone(newHabitat(), "a")
	w.habitat("a", greeter)
	w.see()
	w.must(w.ring())
	w.wrote("patch ConfigMap habitat-peers")
	wantOwners(t, w, "a", "b")
	for _, owner := range must(t, &corev1.ConfigMap{}, w, peersApplication).OwnerReferences {
		if owner.UID == a.GetUID() {
			t.Error("the former Habitat still owns it")
		}
	}
}

func wantOwners(t *testing.T, w *world, names ...string) {
	t.Helper()
	owners := must(t, &corev1.ConfigMap{}, w, peersApplication).OwnerReferences
	if len(owners) != len(names) {
		t.Fatalf("owners %v, want %v", owners, names)
	}
	for i, owner := range owners {
		found := must(t, newHabitat(), w, names[i])
		if owner.Name != names[i] || owner.UID != found.GetUID() || owner.Controller != nil || types.UID("") == owner.UID {
			t.Errorf("owner %v, want %s", owner, names[i])
		}
	}
}

// A process keeps the peer that it has chosen, or found at its start. If a user writes the
// address of another Pod into the file, it is reset. A deleted file is created with the same
// address.
func TestAChoiceIsKept(t *testing.T) {
	const one, other = "10.0.0.1", "10.0.0.2"
	w := carried(t, "greeter", greeter)
	w.have(pod("greeter-0", "greeter", one))
	w.have(pod("greeter-1", "greeter", other))
	write := func(address string) {
		edit(w, &corev1.ConfigMap{}, peerFile, func(cm *corev1.ConfigMap) { cm.Data = map[string]string{peerFile: address} })
		w.see()
	}
	write(other) // of a former process
	p := &peers{shared: w.shared}
	has := func(want string) {
		t.Helper()
		w.must(p.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: shop}}))
		if got := must(t, &corev1.ConfigMap{}, w, peerFile).Data[peerFile]; got != want {
			t.Errorf("the peer file has %q, want %q", got, want)
		}
		w.see()
	}
	has(other)
	write(one)
	has(other)
	write("")
	has(other)
	w.gone(&corev1.Pod{}, "greeter-1")
	w.see()
	has(one)
	write(other)
	has(one)
}
