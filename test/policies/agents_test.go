package policies

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/test/kit"
)

// Messages of the policy krake-configmaps about ConfigMaps of agents.
const (
	notOurs = "an agent changes and deletes only ConfigMaps that carry its annotation krake.dev/owner: leave this one to its owner, " +
		"or, to adopt it outside of the namespaces of Kubernetes, first set its marks and change nothing else"
	unmarked = "an agent writes only ConfigMaps that carry its marks: set the label krake.dev/owned-by and the annotation krake.dev/owner, " +
		"or, to let go of it, take all of them away and change nothing else"
	notHere = "this agent has no objects here, and writes Applications only: if this is its cluster, have the ClusterRole " +
		"krake-agent-target bound"
	notDeleted = "an agent deletes only ConfigMaps of its cluster that carry its annotation krake.dev/owner: leave this one to its owner"
)

// marked adds the marks of an Application's object.
func marked(cm *corev1.ConfigMap) {
	with(cm, label("krake.dev/owned-by", "0123456789abcdef"),
		annotate("krake.dev/owner", cm.Namespace+"/a /ConfigMap/"+cm.Namespace+"/"+cm.Name),
		annotate("krake.dev/owner-uid", "5f0c8a4e-0000-4000-8000-000000000000"))
}

// letGoOf removes all marks.
func letGoOf(cm *corev1.ConfigMap) {
	with(cm, noLabel("krake.dev/owned-by"), noAnnotation("krake.dev/owner"), noAnnotation("krake.dev/owner-uid"))
}

// theirs creates a ConfigMap of another client, with an entry in every field.
var theirs = &made{func(t *testing.T, namespace string) *corev1.ConfigMap {
	t.Helper()
	return create(t, administrator, plain(namespace, "app"), data("x", "1"), binary("y", "1"), label("team", "blue"), annotate("note", "mine"),
		ownedByDefault(t), func(cm *corev1.ConfigMap) { cm.Finalizers = []string{"example.org/theirs"} })
}}

// applied creates a ConfigMap that an agent made for an Application.
var applied = &made{func(t *testing.T, namespace string) *corev1.ConfigMap {
	t.Helper()
	return create(t, agent("local"), plain(namespace, "app"), marked, data("x", "1"))
}}

// An agent writes the ConfigMaps that an Application asks for, and no others.
func TestAgentsWriteMarkedConfigMaps(t *testing.T) {
	local := agent("local")
	noOwner, noOwnedBy := noAnnotation("krake.dev/owner"), noLabel("krake.dev/owned-by")
	check(t, []write{
		{"create one that is marked", local, nil, []edit{marked, data("x", "1")}, allowed},
		{"create one without the label", local, nil, []edit{marked, noOwnedBy}, unmarked},
		{"create one with an empty label", local, nil, []edit{marked, label("krake.dev/owned-by", "")}, unmarked},
		{"create one without the annotation", local, nil, []edit{marked, noOwner}, unmarked},
		{"create one with an empty annotation", local, nil, []edit{marked, annotate("krake.dev/owner", "")}, unmarked},
		{"create one, by the group alone", impostor, nil, nil, unmarked},
		{"create one, by the name alone", namesake, nil, nil, unmarked},

		{"change its own", local, applied, []edit{data("x", "2"), noLabel("team")}, allowed},
		{"change another agent's, for an Application that moved", agent("other"), applied, []edit{data("x", "2")}, allowed},
		{"restore the label", local, changed(applied, noOwnedBy), []edit{marked}, allowed},
		{"leave the label lost", local, changed(applied, noOwnedBy), []edit{data("x", "2")}, unmarked},
		{"take the annotation away", local, applied, []edit{noOwner}, unmarked},
		{"change a user's", local, barePlain, []edit{data("x", "2")}, notOurs},
		{"change what has the label only", local, changed(applied, noOwner), []edit{data("x", "2")}, notOurs},
	})
}

// An agent whose objects are on another cluster writes Applications here, and no other ConfigMap: it adds no marks to one of
// a user, and the marks of another agent are none of its own.
func TestAnAgentOfAnotherClusterWritesApplicationsOnly(t *testing.T) {
	far := agent("far")
	check(t, []write{
		{"add the marks to one of a user", far, theirs, []edit{marked}, notHere},
		{"change one that another agent made", far, applied, []edit{data("x", "2")}, notHere},
		{"release one", far, applied, []edit{letGoOf}, notHere},
		{"create one", far, nil, []edit{marked}, notHere},
	})
	namespace := newNamespace(t)
	applied.in(t, namespace)
	expect(t, notDeleted, far.mustClient(t).CoreV1().ConfigMaps(namespace).Delete(t.Context(), "app", metav1.DeleteOptions{}))
}

// An agent adopts another client's ConfigMap with a write that adds the marks, and
// releases its own with one that removes them. Other changes need a separate write.
func TestAgentsAdoptAndLetGo(t *testing.T) {
	local := agent("local")
	noUID, noOwner, noOwnedBy := noAnnotation("krake.dev/owner-uid"), noAnnotation("krake.dev/owner"), noLabel("krake.dev/owned-by")
	adopted := changed(theirs, marked)
	other := map[string]edit{
		"the data":             data("x", "2"),
		"the data, by more":    data("z", "2"),
		"the data, by less":    func(cm *corev1.ConfigMap) { cm.Data = nil },
		"the binary data":      binary("y", "2"),
		"no binary data":       func(cm *corev1.ConfigMap) { cm.BinaryData = nil },
		"a label":              label("team", "red"),
		"a label more":         label("krake.dev/state", "x"),
		"a label less":         noLabel("team"),
		"an annotation":        annotate("note", "x"),
		"an annotation more":   annotate("krake.dev/hold-until", "x"),
		"an annotation less":   noAnnotation("note"),
		"the finalizers":       func(cm *corev1.ConfigMap) { cm.Finalizers = nil },
		"the owners":           func(cm *corev1.ConfigMap) { cm.OwnerReferences = nil },
		"that it is immutable": immutable,
	}
	writes := []write{
		{"adopt one with nothing in it", local, barePlain, []edit{marked}, allowed},
		{"adopt one with something in every place", local, theirs, []edit{marked}, allowed},
		{"adopt one that is immutable", local, changed(theirs, immutable), []edit{marked}, allowed},
		{"adopt one by all marks but the UID", local, theirs, []edit{marked, noUID}, allowed},
		{"adopt one by the label alone", local, theirs, []edit{marked, noOwner}, notOurs},
		{"adopt one by the annotation alone", local, theirs, []edit{marked, noOwnedBy}, notOurs},
		{"adopt one by an annotation of nobody", local, theirs, []edit{marked, annotate("krake.dev/owner", "")}, notOurs},
		{"adopt one, by the group alone", impostor, theirs, []edit{marked}, allowed},
		{"restore the annotation", local, changed(adopted, noOwner), []edit{marked}, allowed},
		{"restore all but the UID", local, changed(adopted, noOwner, noOwnedBy), []edit{marked}, allowed},
		{"restore the annotation, and revert the data", local, changed(adopted, noOwner, data("x", "2")), []edit{marked, data("x", "1")}, notOurs},

		{"let go", local, adopted, []edit{letGoOf}, allowed},
		{"let go of what has lost the label", local, changed(adopted, noOwnedBy), []edit{letGoOf}, allowed},
		{"let go, and keep the UID", local, adopted, []edit{noOwner, noOwnedBy}, unmarked},
		{"let go, and leave an empty label", local, adopted, []edit{letGoOf, label("krake.dev/owned-by", "")}, unmarked},
		{"let go of what is not its own", local, changed(theirs, label("krake.dev/owned-by", "x")), []edit{letGoOf}, notOurs},
	}
	for what, change := range other {
		writes = append(writes,
			write{"adopt one and change " + what, local, theirs, []edit{marked, change}, notOurs},
			write{"let go and change " + what, local, adopted, []edit{letGoOf, change}, unmarked})
	}
	check(t, writes)
}

// No agent adopts a ConfigMap that Kubernetes needs, wherever agents may write.
func TestAgentsAdoptNothingOfKubernetes(t *testing.T) {
	configMaps := agent("local").mustClient(t).CoreV1().ConfigMaps
	for _, namespace := range []string{"kube-system", "kube-public", "krake-system", "krake-agents"} {
		cm := create(t, administrator, plain(namespace, "theirs"), data("x", "1"))
		// Two policies refuse most of it, in no order.
		wanted := []string{notOurs, notDeleted, fmt.Sprintf(closedMessage, namespace)}
		for _, err := range []error{
			kit.ErrorOf(update(t, agent("local"), cm, marked)), configMaps(namespace).Delete(t.Context(), cm.Name, metav1.DeleteOptions{}),
		} {
			if got := verdict(err); !slices.Contains(wanted, got) {
				t.Errorf("%s: the policies say %q", namespace, got)
			}
		}
		kit.Must(t, server.CoreV1().ConfigMaps(namespace).Delete(t.Context(), cm.Name, metav1.DeleteOptions{}))
	}
	var root *corev1.ConfigMap
	kit.EventuallyNil(t, func() (err error) {
		root, err = configMaps("default").Get(t.Context(), "kube-root-ca.crt", metav1.GetOptions{})
		return err
	})
	expect(t, notOurs, kit.ErrorOf(update(t, agent("local"), root, marked)))
}

// An agent deletes ConfigMaps that it made, by name and as a collection.
func TestAgentsDeleteMarkedConfigMaps(t *testing.T) {
	namespace := newNamespace(t)
	configMaps := agent("local").mustClient(t).CoreV1().ConfigMaps(namespace)
	for _, c := range []struct {
		what   string
		stored state
		want   string
	}{
		{"its own", applied, allowed},
		{"its own that has lost the label", changed(applied, noLabel("krake.dev/owned-by")), allowed},
		{"a user's", barePlain, notDeleted},
		{"what has the label only", changed(applied, noAnnotation("krake.dev/owner")), notDeleted},
		{"what has an empty annotation", changed(applied, annotate("krake.dev/owner", "")), notDeleted},
	} {
		t.Run(c.what, func(t *testing.T) {
			c.stored.in(t, namespace)
			defer letGo(t, namespace)
			expect(t, c.want, configMaps.Delete(t.Context(), "app", metav1.DeleteOptions{}))
		})
	}

	create(t, administrator, plain(namespace, "users"))
	only := metav1.ListOptions{FieldSelector: "metadata.name=users"}
	expect(t, notDeleted, configMaps.DeleteCollection(t.Context(), metav1.DeleteOptions{}, only))
}

// The policies allow every write of other ConfigMaps by other clients, with any content
// and in any namespace.
func TestPlainConfigMaps(t *testing.T) {
	namespace := newNamespace(t)
	full := []edit{
		data("status", "{}"), data("inventory.local", "[]"), data("spec.manifest", "x"), binary("status.learned", "x"),
		label("krake.dev/state", "x"), label("holder.krake.dev/local", "x"), annotate("krake.dev/cluster", "x"),
		annotate("krake.dev/force-delete", "true"), annotate("krake.dev/applications", "v1"),
	}
	contents := map[string][]edit{
		"nothing":           nil,
		"empty maps":        {func(cm *corev1.ConfigMap) { cm.Annotations, cm.Labels = map[string]string{}, map[string]string{} }},
		"annotations only":  {annotate("note", "x")},
		"labels only":       {label("team", "x")},
		"keys like ours":    full,
		"our marks":         {marked},
		"binary data":       {binary("x", "y")},
		"that is immutable": {immutable},
		"with an owner":     {ownedByDefault(t)},
	}
	for _, who := range []identity{administrator, namespaceEditor, namespaceAdmin, configMapEditor} {
		for what, edits := range contents {
			t.Run(who.name+": "+what, func(t *testing.T) {
				cm := create(t, who, plain(namespace, "plain"), edits...)
				mustUpdate(t, who, cm, label("changed", "yes"), addFinalizerOf("local"))
				mustUpdate(t, who, cm, func(cm *corev1.ConfigMap) { cm.ResourceVersion, cm.Finalizers, cm.Labels = "", nil, nil })
				kit.Must(t, who.mustClient(t).CoreV1().ConfigMaps(namespace).Delete(t.Context(), "plain", metav1.DeleteOptions{}))
			})
		}
	}
	configMaps := configMapEditor.mustClient(t).CoreV1().ConfigMaps(namespace)
	kit.Must(t, configMaps.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
}
