package habitat

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/habitat"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// TestModel runs users, agent, garbage collector and controllers in any order, with caches
// that are each behind by a random amount. It checks at each write that the process may make
// it. At the end, it checks the final state, and that all writes have stopped.
func TestModel(t *testing.T) {
	const steps = 80
	seeds := uint64(60)
	if testing.Short() {
		seeds = 20
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := &model{world: newWorld(t), random: rand.New(rand.NewPCG(seed, 0))}
			m.world.audit = m.judge
			acts := m.acts()
			for range steps {
				act := acts[m.random.IntN(len(acts))]
				m.log = append(m.log, act.name)
				act.do()
			}
			m.settle()
			m.check()
			if t.Failed() {
				t.Logf("seed %d: %s", seed, strings.Join(m.log, ", "))
			}
		})
	}
}

type model struct {
	*world

	random *rand.Rand
	log    []string
	pods   int
}

type act struct {
	name string
	do   func()
}

// names are the names of the Habitats. The ConfigMap of the last one may be foreign.
var names = []string{"a", "b", "crew", "taken"}

func (m *model) anyName() string { return names[m.random.IntN(len(names))] }

func (m *model) acts() []act {
	return append(m.people(), []act{
		{"agent", m.agent},
		{"garbage", m.collect},
		{"sets", m.sets},
		{"see some", func() { m.see(lists()[m.random.IntN(len(lists()))]) }},
		{"see some more", func() { m.see(lists()[m.random.IntN(len(lists()))], lists()[m.random.IntN(len(lists()))]) }},
		{"see", func() { m.see() }},
		{"carry", func() { m.pass(func() error { _, err := m.carry(m.anyName()); return err }) }},
		{"carry again", func() { m.pass(func() error { _, err := m.carry(m.anyName()); return err }) }},
		{"ring", func() { m.pass(func() error { _, err := m.ring(); return err }) }},
		{"choose", func() { m.pass(func() error { _, err := m.choose(); return err }) }},
		{"replace", func() { m.pass(func() error { _, err := m.replacePods(m.anyName()); return err }) }},
		{"another replica", m.another},
	}...)
}

// pass runs a pass of a controller. If its cache is behind, the API server returns a conflict.
func (m *model) pass(do func() error) {
	m.t.Helper()
	if err := do(); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		m.t.Error(err)
	}
}

// another runs another replica, whose cache is current: this one has lost the Lease, and gets
// it back.
func (m *model) another() {
	m.t.Helper()
	seen := m.seen
	m.see()
	for _, name := range names {
		m.pass(func() error { _, err := m.carry(name); return err })
	}
	m.pass(func() error { _, err := m.ring(); return err })
	m.agent()
	m.sets()
	m.kill()
	m.sets()
	m.seen = seen
}

// people returns the actions of users.
func (m *model) people() []act {
	return []act{
		{"create", m.create},
		{"create", m.create},
		{"delete", func() { m.remove(newHabitat(), m.anyName()) }},
		{"edit", func() {
			m.change(newHabitat(), m.anyName(), func(object client.Object) {
				h, ok := object.(*unstructured.Unstructured)
				if !ok {
					return
				}
				if spec, ok, _ := unstructured.NestedMap(h.Object, "spec", "v1beta2"); ok {
					spec["image"] = fmt.Sprintf("image:%d", m.random.IntN(3))
					_ = unstructured.SetNestedMap(h.Object, spec, "spec", "v1beta2") // it is one
				}
				h.SetGeneration(h.GetGeneration() + 1)
			})
		}},
		{"edit Application", func() { m.change(&corev1.ConfigMap{}, applicationPrefix+m.anyName(), m.spoil) }},
		{"edit ring", func() { m.change(&corev1.ConfigMap{}, peersApplication, m.spoil) }},
		{"delete Application", func() { m.remove(&corev1.ConfigMap{}, applicationPrefix+m.anyName()) }},
		{"delete ring", func() { m.remove(&corev1.ConfigMap{}, peersApplication) }},
		{"edit file", func() {
			m.change(&corev1.ConfigMap{}, peerFile, func(object client.Object) {
				if cm, ok := object.(*corev1.ConfigMap); ok {
					cm.Data = map[string]string{peerFile: "192.0.2.1", "mine": "yes"}
				}
			})
		}},
		{"delete file", func() { m.remove(&corev1.ConfigMap{}, peerFile) }},
		{"take name", func() { m.put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "habitat-taken"}}) }},
		{"create Secret", func() { m.put(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "config"}}) }},
		{"delete Secret", func() { m.remove(&corev1.Secret{}, "config") }},
		{"kill", m.kill},
		{"change Pod", func() {
			if p := m.anyPod(); p != nil {
				m.change(&corev1.Pod{}, p.Name, func(object client.Object) {
					if p, ok := object.(*corev1.Pod); ok {
						p.Status.Phase = []corev1.PodPhase{corev1.PodRunning, corev1.PodPending, corev1.PodFailed}[m.random.IntN(3)]
						_ = m.server.Status().Update(m.t.Context(), p) // no other client has changed it meanwhile
					}
				})
			}
		}},
	}
}

func (m *model) create() {
	name := m.anyName()
	text := []string{
		greeter, greeter,
		"spec: {image: old:1, service: {name: old, topology: standalone}}",
		"customVersion: v9\nspec: {}",
		"customVersion: v1beta2\nspec: {v1beta2: {image: '', service: {}}}",
		"customVersion: v1beta2\nspec: {v1beta2: {image: a:1, service: {name: a, topology: leader, configSecretName: config}}}",
	}[m.random.IntN(6)]
	if name == "crew" {
		text = crew
	}
	if _, ok := live(m.world, newHabitat(), name); !ok {
		m.habitat(name, text)
	}
}

// spoil removes marks of ownership or content from an Application.
func (m *model) spoil(object client.Object) {
	cm, ok := object.(*corev1.ConfigMap)
	if !ok || cm.Annotations[application.GeneratedFromAnnotation] == "" {
		return
	}
	switch m.random.IntN(5) {
	case 0:
		cm.Labels = map[string]string{"team": "blue"}
	case 1:
		delete(cm.Annotations, application.GeneratedFromAnnotation)
		if len(cm.OwnerReferences) == 0 {
			cm.Annotations[application.GeneratedFromAnnotation] = "Habitat/" + strings.TrimPrefix(cm.Name, applicationPrefix)
		}
	case 2:
		cm.OwnerReferences = nil
		if cm.Name == peersApplication {
			cm.Annotations[application.GeneratedFromAnnotation] = generatedFromAll
		} else {
			cm.Annotations[application.GeneratedFromAnnotation] = generatedFromOne + strings.TrimPrefix(cm.Name, applicationPrefix)
		}
	case 3:
		cm.Data[application.ObserverSchemaKey] = ""
	case 4:
		cm.Annotations[application.ModeAnnotation] = "observe"
	}
}

func (m *model) put(object client.Object) {
	m.t.Helper()
	object.SetNamespace(shop)
	if err := m.server.Create(m.t.Context(), object); err != nil && !apierrors.IsAlreadyExists(err) {
		m.t.Fatal(err)
	}
}

func (m *model) remove(object client.Object, name string) {
	m.t.Helper()
	object.SetNamespace(shop)
	object.SetName(name)
	if err := m.server.Delete(m.t.Context(), object); client.IgnoreNotFound(err) != nil {
		m.t.Fatal(err)
	}
}

func (m *model) change(object client.Object, name string, how func(client.Object)) {
	m.t.Helper()
	err := m.server.Get(m.t.Context(), types.NamespacedName{Namespace: shop, Name: name}, object)
	if apierrors.IsNotFound(err) {
		return
	}
	kit.Must(m.t, err)
	how(object)
	kit.Must(m.t, m.server.Update(m.t.Context(), object))
}

func (m *model) all(list client.ObjectList) []client.Object {
	m.t.Helper()
	kit.Must(m.t, m.server.List(m.t.Context(), list, client.InNamespace(shop)))
	found, err := meta.ExtractList(list)
	kit.Must(m.t, err)
	var objects []client.Object
	for _, item := range found {
		if object, ok := item.(client.Object); ok {
			objects = append(objects, object)
		}
	}
	return objects
}

func (m *model) anyPod() *corev1.Pod {
	found := m.all(&corev1.PodList{})
	if len(found) == 0 {
		return nil
	}
	p, _ := found[m.random.IntN(len(found))].(*corev1.Pod)
	return p
}

func (m *model) kill() {
	if p := m.anyPod(); p != nil {
		m.remove(&corev1.Pod{}, p.Name)
	}
}

// collect acts as the garbage collector, and as the agent on the objects of removed
// Applications.
func (m *model) collect() {
	m.t.Helper()
	uids := map[types.UID]bool{}
	for _, list := range []client.ObjectList{newHabitatList(), &corev1.ConfigMapList{}} {
		for _, object := range m.all(list) {
			owners := object.GetOwnerReferences()
			if len(owners) > 0 && !slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return uids[o.UID] }) {
				m.remove(object, object.GetName())
				continue
			}
			uids[object.GetUID()] = true
		}
	}
	for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, &appsv1.StatefulSetList{}, &appsv1.DeploymentList{}} {
		for _, object := range m.all(list) {
			owner, marked := object.GetAnnotations()[application.OwnerUIDAnnotation]
			if marked && !uids[types.UID(owner)] {
				m.remove(object, object.GetName())
			}
		}
	}
	for _, object := range m.all(&corev1.PodList{}) {
		set, ok := live(m.world, &appsv1.StatefulSet{}, object.GetLabels()[habitat.NameLabel])
		if !ok || !metav1.IsControlledBy(object, set) {
			m.remove(&corev1.Pod{}, object.GetName())
		}
	}
}

// sets acts as the controller of StatefulSets.
func (m *model) sets() {
	m.t.Helper()
	for _, object := range m.all(&appsv1.StatefulSetList{}) {
		set, ok := object.(*appsv1.StatefulSet)
		if !ok {
			continue
		}
		set.Status.ObservedGeneration = set.Generation
		set.Status.UpdateRevision = strings.ReplaceAll(set.Spec.Template.Spec.Containers[0].Image, ":", "-")
		kit.Must(m.t, m.server.Status().Update(m.t.Context(), set))
		for i := range 2 {
			name := fmt.Sprintf("%s-%d", set.Name, i)
			if _, ok := live(m.world, &corev1.Pod{}, name); !ok {
				m.pods++
				m.member(name, set.Name, fmt.Sprintf("10.0.%d.%d", m.pods/256, m.pods%256), set.Status.UpdateRevision)
			}
		}
	}
}

// judge checks a write of the process.
func (m *model) judge(verb string, before, after client.Object) {
	m.t.Helper()
	switch verb {
	case "create":
		if cm, ok := after.(*corev1.ConfigMap); !ok || !strings.HasPrefix(cm.Name, applicationPrefix) || len(cm.OwnerReferences) == 0 {
			m.t.Errorf("created %v", after)
		}
	case "patch":
		m.judgePatch(before, after)
	case "delete":
		m.judgeDelete(before)
	}
}

func (m *model) judgePatch(before, after client.Object) {
	m.t.Helper()
	was, ok := before.(*corev1.ConfigMap)
	is, same := after.(*corev1.ConfigMap)
	if !ok || !same {
		m.t.Errorf("patched %v", before)
		return
	}
	if was.Name != peerFile {
		if was.Annotations[application.GeneratedFromAnnotation] == "" && len(was.OwnerReferences) == 0 {
			m.t.Errorf("patched somebody else's %v", was)
		}
		return
	}
	was, is = was.DeepCopy(), is.DeepCopy()
	was.ResourceVersion, is.ResourceVersion = "", ""
	if was.Data == nil {
		was.Data = map[string]string{}
	}
	was.Data[peerFile] = is.Data[peerFile]
	check.Equal(m.t, "more than the address was written", was, is)
}

func (m *model) judgeDelete(before client.Object) {
	m.t.Helper()
	p, ok := before.(*corev1.Pod)
	if !ok {
		m.t.Errorf("deleted %v", before)
		return
	}
	set, ok := live(m.world, &appsv1.StatefulSet{}, p.Labels[habitat.NameLabel])
	if !ok || !metav1.IsControlledBy(p, set) {
		return // it is removed anyway
	}
	if p.Labels[appsv1.ControllerRevisionHashLabelKey] == set.Status.UpdateRevision && set.Status.ObservedGeneration == set.Generation {
		m.t.Errorf("deleted Pod %s of the revision %s that is wanted", p.Name, set.Status.UpdateRevision)
	}
}

// settle runs until all writes have stopped.
func (m *model) settle() {
	m.t.Helper()
	const most = 20
	for range most {
		m.agent()
		m.collect()
		m.sets()
		m.see()
		m.writes, m.told = nil, nil
		for _, name := range names {
			m.pass(func() error { _, err := m.carry(name); return err })
			m.pass(func() error { _, err := m.replacePods(name); return err })
		}
		m.pass(func() error { _, err := m.ring(); return err })
		m.pass(func() error { _, err := m.choose(); return err })
		if len(m.writes) == 0 && len(m.told) == 0 {
			return
		}
	}
	m.t.Errorf("it does not settle: %q, %q", m.writes, m.told)
}

// check asserts the final state.
func (m *model) check() {
	m.t.Helper()
	_, hasSecret := live(m.world, &corev1.Secret{}, "config")
	owners := map[string]types.UID{}
	for _, name := range names {
		object, ok := live(m.world, newHabitat(), name)
		cm, has := live(m.world, &corev1.ConfigMap{}, applicationPrefix+name)
		if !ok {
			if has && cm.Annotations[application.GeneratedFromAnnotation] != "" && len(cm.OwnerReferences) > 0 {
				m.t.Errorf("Application of no Habitat: %v", cm)
			}
			continue
		}
		if isKnown(habitat.CustomVersionOf(object.Object)) {
			owners[name] = object.GetUID()
		}
		m.checkHabitat(object, cm, has, hasSecret)
	}
	m.checkRing(owners)
	m.checkPods()
}

func (m *model) checkHabitat(object *unstructured.Unstructured, cm *corev1.ConfigMap, has, hasSecret bool) {
	m.t.Helper()
	status := statusOf(object)
	if status.ObservedGeneration != object.GetGeneration() {
		m.t.Errorf("%s: generation %d, observed is %d", object.GetName(), object.GetGeneration(), status.ObservedGeneration)
	}
	reason := m.condition(acceptedCondition, object.GetName()).Reason
	h, refusals := habitat.Parse(object.Object)
	isTaken := has && cm.Annotations[application.GeneratedFromAnnotation] == "" && len(cm.OwnerReferences) == 0
	wanted := reasonAccepted
	switch {
	case !isKnown(h.CustomVersion):
		wanted = reasonUnknownVersion
	case len(refusals) > 0:
		wanted = reasonValidationFailed
	case len(h.Secrets()) > 0 && !hasSecret:
		wanted = reasonSecretNotFound
	case isTaken:
		wanted = reasonNameConflict
	}
	if reason != wanted {
		m.t.Errorf("%s: %s, want %s", object.GetName(), reason, wanted)
	}
	if wanted != reasonAccepted {
		return
	}
	next, err := m.applicationOf(h)
	kit.Must(m.t, err)
	if !has || !metav1.IsControlledBy(cm, object) || !maps.Equal(cm.Data, next.Data) {
		m.t.Errorf("%s: Application %v", object.GetName(), cm)
	}
}

func (m *model) checkRing(owners map[string]types.UID) {
	m.t.Helper()
	cm, has := live(m.world, &corev1.ConfigMap{}, peersApplication)
	got := map[string]types.UID{}
	if has {
		for _, owner := range cm.OwnerReferences {
			got[owner.Name] = owner.UID
		}
	}
	if len(owners) > 0 && !maps.Equal(owners, got) || len(owners) == 0 && len(got) > 0 {
		m.t.Errorf("owners %v, want %v", got, owners)
	}
}

func (m *model) checkPods() {
	m.t.Helper()
	file, has := live(m.world, &corev1.ConfigMap{}, peerFile)
	running := map[string]bool{}
	for _, object := range m.all(&corev1.PodList{}) {
		p, ok := object.(*corev1.Pod)
		if !ok {
			continue
		}
		if p.Status.Phase == corev1.PodRunning {
			running[p.Status.PodIP] = true
		}
		set, ok := live(m.world, &appsv1.StatefulSet{}, p.Labels[habitat.NameLabel])
		_, wanted := live(m.world, newHabitat(), p.Labels[habitat.NameLabel])
		if ok && wanted && set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType &&
			p.Labels[appsv1.ControllerRevisionHashLabelKey] != set.Status.UpdateRevision {
			m.t.Errorf("Pod %s is of revision %s", p.Name, p.Labels[appsv1.ControllerRevisionHashLabelKey])
		}
	}
	if peer := file.Data[peerFile]; has && (peer == "" && len(running) > 0 || peer != "" && !running[peer]) {
		m.t.Errorf("peer %q, of %v", peer, slices.Sorted(maps.Keys(running)))
	}
}
