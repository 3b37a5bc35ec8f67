package policies

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What the policy krake-agents-configmaps says.
const (
	notOurs  = "an agent changes and deletes only ConfigMaps that carry its annotation krake.dev/owner: leave this one to its owner"
	unmarked = "an agent writes only ConfigMaps that carry its marks: set the label krake.dev/owned-by and the annotation krake.dev/owner"
)

// marked puts the marks on an object that belongs to an Application.
func marked(cm *corev1.ConfigMap) {
	label("krake.dev/owned-by", "0123456789abcdef")(cm)
	annotate("krake.dev/owner", cm.Namespace+"/a /ConfigMap/"+cm.Namespace+"/"+cm.Name)(cm)
}

// applied is a ConfigMap that an agent made for an Application.
func applied(t *testing.T, namespace string) *corev1.ConfigMap {
	t.Helper()
	return create(t, agent("local"), plain(namespace, "app"), marked, data("x", "1"))
}

// The ConfigMaps that an Application asks for are an agent's, all others are not.
func TestAgentsWriteMarkedConfigMaps(t *testing.T) {
	local := agent("local")
	noOwner, noOwnedBy := noAnnotation("krake.dev/owner"), noLabel("krake.dev/owned-by")
	check(t, []write{
		{"create one that is marked", local, nil, []edit{marked, data("x", "1")}, allowed},
		{"create one with nothing in it", local, nil, nil, unmarked},
		{"create one without the label", local, nil, []edit{marked, noOwnedBy}, unmarked},
		{"create one with an empty label", local, nil, []edit{marked, label("krake.dev/owned-by", "")}, unmarked},
		{"create one without the annotation", local, nil, []edit{marked, noOwner}, unmarked},
		{"create one with an empty annotation", local, nil, []edit{marked, annotate("krake.dev/owner", "")}, unmarked},
		{"create one, by the group alone", impostor, nil, nil, unmarked},
		{"create one, by the name alone", namesake, nil, nil, unmarked},

		{"change its own", local, applied, []edit{data("x", "2"), noLabel("team")}, allowed},
		{"change another agent's, for an Application that moved", agent("other"), applied, []edit{data("x", "2")}, allowed},
		{"restore the label", local, changed(applied, noOwnedBy), []edit{marked}, allowed},
		{"restore all labels", local, changed(applied, func(cm *corev1.ConfigMap) { cm.Labels = nil }), []edit{marked}, allowed},
		{"leave the label lost", local, changed(applied, noOwnedBy), []edit{data("x", "2")}, unmarked},
		{"take the label away", local, applied, []edit{noOwnedBy}, unmarked},
		{"take the annotation away", local, applied, []edit{noOwner}, unmarked},
		{"change a user's", local, barePlain, []edit{data("x", "2")}, notOurs},
		{"mark a user's", local, barePlain, []edit{marked}, notOurs},
		{"mark what has the label only", local, changed(applied, noOwner), []edit{marked}, notOurs},
		{"mark what has an empty annotation", local, changed(applied, annotate("krake.dev/owner", "")), []edit{marked}, notOurs},
	})
}

// An agent deletes what it made, one by one and as a collection.
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
		{"a user's", barePlain, notOurs},
		{"what has the label only", changed(applied, noAnnotation("krake.dev/owner")), notOurs},
		{"what has an empty annotation", changed(applied, annotate("krake.dev/owner", "")), notOurs},
	} {
		t.Run(c.what, func(t *testing.T) {
			c.stored(t, namespace)
			defer letGo(t, namespace)
			expect(t, c.want, configMaps.Delete(t.Context(), "app", metav1.DeleteOptions{}))
		})
	}

	create(t, administrator, plain(namespace, "users"))
	only := metav1.ListOptions{FieldSelector: "metadata.name=users"}
	expect(t, notOurs, configMaps.DeleteCollection(t.Context(), metav1.DeleteOptions{}, only))
}

// Of the ConfigMaps of everybody else the policies say nothing, whatever is in
// them, and wherever they are.
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
				if err := who.mustClient(t).CoreV1().ConfigMaps(namespace).Delete(t.Context(), "plain", metav1.DeleteOptions{}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	if err := configMapEditor.mustClient(t).CoreV1().ConfigMaps(namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
}
