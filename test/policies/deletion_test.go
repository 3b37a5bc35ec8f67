package policies

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

const agentsNever = "an agent deletes no Application but one of its own cluster whose annotation krake.dev/hooks names complete: have a user do it"

// mayNot is the message for a user who may delete only ConfigMaps.
func mayNot(user, namespace string) string {
	return fmt.Sprintf("user %q may delete ConfigMaps, but no Applications in namespace %q: have the ClusterRole krake-application-delete bound", user, namespace)
}

// A user who may edit ConfigMaps, and nothing else, cannot delete an Application:
// neither by name, nor by a selector, nor with --all.
func TestDeletionNeedsTheRight(t *testing.T) {
	namespace := newNamespace(t)
	for _, who := range []identity{namespaceEditor, namespaceAdmin} {
		await(t, who, "delete", "krake.dev", "applications", namespace)
	}
	agents := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:krake-agents"}
	bindIn(t, namespace, "ClusterRole", "krake-application-delete", agents)
	await(t, identity{name: "x", groups: []string{agents.Name}}, "delete", "krake.dev", "applications", namespace)

	checkDeletions(t, namespace, []deletion{
		{"with all rights", administrator, bare, allowed},
		{"with the role edit", namespaceEditor, bare, allowed},
		{"with the role admin", namespaceAdmin, bare, allowed},
		{"with rights on ConfigMaps alone", configMapEditor, bare, mayNot("carl", namespace)},
		{"once more, as a force deletion does", configMapEditor, deleted(moved), mayNot("carl", namespace)},
		{"although the role is bound", agent("local"), moved, agentsNever},
		{"although it has the marks, too", agent("local"), changed(bare, marked), agentsNever},
		{"by the group alone", impostor, bare, agentsNever},
		{"by the name alone", namesake, bare, agentsNever},
	})
}

// deletion is a row of a table: who deletes what, and the policy's message. Deleted
// objects have no finalizers.
type deletion struct {
	what   string
	who    identity
	stored state
	want   string
}

// checkDeletions deletes each object by its name, and another in a collection.
func checkDeletions(t *testing.T, namespace string, deletions []deletion) {
	t.Helper()
	for _, d := range deletions {
		t.Run(d.who.name+": "+d.what, func(t *testing.T) {
			configMaps := d.who.mustClient(t).CoreV1().ConfigMaps(namespace)
			d.stored.in(t, namespace)
			expect(t, d.want, configMaps.Delete(t.Context(), "app", metav1.DeleteOptions{}))
			expectThere(t, namespace, d.want != allowed)
			letGo(t, namespace)

			d.stored.in(t, namespace)
			everything := metav1.ListOptions{FieldSelector: "metadata.name=app"}
			expect(t, d.want, configMaps.DeleteCollection(t.Context(), metav1.DeleteOptions{}, everything))
			expectThere(t, namespace, d.want != allowed)
			letGo(t, namespace)
		})
	}
}

// A deletion that leaves the dependents would not keep the objects, because they have no owner reference. The
// user has to say it to the agent.
func TestADeletionThatOrphansNeedsTheAnnotation(t *testing.T) {
	namespace := newNamespace(t)
	await(t, namespaceEditor, "delete", "krake.dev", "applications", namespace)
	configMaps := namespaceEditor.mustClient(t).CoreV1().ConfigMaps(namespace)
	const refused = "--cascade=orphan does not keep the objects of an Application: annotate it with krake.dev/deletion-policy=orphan, and delete it then"
	for _, c := range []struct {
		stored state
		policy metav1.DeletionPropagation
		want   string
	}{
		{bare, metav1.DeletePropagationOrphan, refused},
		{changed(bare, annotate("krake.dev/deletion-policy", "delete")), metav1.DeletePropagationOrphan, refused},
		{changed(bare, annotate("krake.dev/deletion-policy", "orphan")), metav1.DeletePropagationOrphan, allowed},
		{bare, metav1.DeletePropagationBackground, allowed},
		{bare, metav1.DeletePropagationForeground, allowed},
	} {
		c.stored.in(t, namespace)
		expect(t, c.want, configMaps.Delete(t.Context(), "app", metav1.DeleteOptions{PropagationPolicy: &c.policy}))
		letGo(t, namespace)
	}
}

// An agent deletes an Application that has reported its work complete. The Application
// must be of the agent's cluster, admitted by the webhook, and with the hook enabled.
// The agent has no other right to delete Applications.
func TestAgentsDeleteWhatIsComplete(t *testing.T) {
	namespace := newNamespace(t)
	local, other := agent("local"), agent("other")
	if who := asSubject("local"); may(t, identity{name: who.name, groups: impostor.groups}, "delete", "krake.dev", "applications", namespace) {
		t.Fatal("the agents may delete Applications: nothing would be shown")
	}
	complete := annotate("krake.dev/hooks", "complete")
	done := changed(admitted, complete)
	others := func(more ...edit) state {
		return changed(admitted, append(more, complete, annotate("krake.dev/cluster", "other"))...)
	}
	hold := func(cluster string) edit { return label("holder.krake.dev/"+cluster, "true") }
	checkDeletions(t, namespace, []deletion{
		{"one with the hook", local, done, allowed},
		{"one with both hooks", local, changed(done, annotate("krake.dev/hooks", " shutdown , complete ")), allowed},
		{"one that names the cluster", local, changed(done, annotate("krake.dev/cluster", "local")), allowed},
		{"one whose name of the cluster is empty", local, changed(done, annotate("krake.dev/cluster", "")), allowed},
		{"one of another cluster that is its own", other, others(hold("other")), allowed},
		{"one that another still holds", local, changed(done, hold("other")), allowed},

		{"one without hooks", local, admitted, agentsNever},
		{"one with the hook shutdown only", local, changed(admitted, annotate("krake.dev/hooks", "shutdown")), agentsNever},
		{"one with a label that says so", local, changed(admitted, label("krake.dev/hooks", "complete")), agentsNever},
		{"one with so many hooks that they are not looked at", local, changed(admitted,
			annotate("krake.dev/hooks", "complete"+strings.Repeat(",", 200<<10))), agentsNever},
		{"one of another cluster", other, done, agentsNever},
		{"one that was moved away from it", local, others(hold("other")), agentsNever},
		{"one that was moved away from it, and whose agent has not yet come", local, others(), agentsNever},
		{"one whose cluster's name begins as its own", agent("loc"), changed(done, hold("loc")), agentsNever},
		{"one that was never admitted", local, changed(bare, complete), agentsNever},
		{"one by the group alone", impostor, done, agentsNever},
		{"one by the name alone", namesake, done, allowed},

		{"the hook gives users no right", configMapEditor, done, mayNot("carl", namespace)},
		{"the hook takes no right from users", namespaceEditor, done, allowed},
	})

	// While the move waits for the former cluster, a second deletion gets no second
	// message.
	deleted(changed(moved, complete)).in(t, namespace)
	configMaps := local.mustClient(t).CoreV1().ConfigMaps(namespace)
	expect(t, allowed, configMaps.Delete(t.Context(), "app", metav1.DeleteOptions{}))
	letGo(t, namespace)
}

// The policy reads the annotation as the agent does. Otherwise it would refuse the
// agent's work, or allow a deletion that no user asked for.
func TestHooksAreReadAlike(t *testing.T) {
	namespace := newNamespace(t)
	configMaps := agent("local").mustClient(t).CoreV1().ConfigMaps(namespace)
	for _, text := range []string{
		"complete", "shutdown", "complete,shutdown", "shutdown,complete", " complete", "complete ", "\tcomplete\n", "shutdown, complete",
		"complete,complete", ",complete", "complete,", ",,complete,,", "", " ", ",", "Complete", "COMPLETE", "completed", "incomplete", "comp lete",
		"complete shutdown", "complete;shutdown", "complete\nshutdown", "\"complete\"", "[complete]", "complete=true",
		"\u00a0complete\u00a0", "\u2003complete", "\u0085complete", "\u200bcomplete", "\ufeffcomplete", "co\u00admplete", "\u0441omplete",
	} {
		cm := create(t, administrator, plain(namespace, "app"), annotated, annotate("krake.dev/hooks", text), label("holder.krake.dev/local", "true"))
		want := agentsNever
		if application.HooksOf(cm).Complete {
			want = allowed
		}
		if got := verdict(configMaps.Delete(t.Context(), "app", metav1.DeleteOptions{})); got != want {
			t.Errorf("%q: the policy says %q, want %q", text, got, want)
		}
		letGo(t, namespace)
	}
}

func expectThere(t *testing.T, namespace string, want bool) {
	t.Helper()
	if there := server.Get(t, kit.ConfigMaps, namespace, "app") != nil; there != want {
		t.Errorf("the Application is there: %t, want %t", there, want)
	}
}

// The right to delete one Application covers this Application only: the policy checks
// the name.
func TestTheRightToDeleteOne(t *testing.T) {
	namespace := newNamespace(t)
	kit.Must(t, apply(t.Context(), fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: one, namespace: %s}
rules: [{apiGroups: [krake.dev], resources: [applications], verbs: [delete], resourceNames: [mine]}]
`, namespace)))
	bindIn(t, namespace, "Role", "one", configMapEditor.subject())
	create(t, administrator, plain(namespace, "mine"), annotated)
	create(t, administrator, plain(namespace, "theirs"), annotated)
	configMaps := configMapEditor.mustClient(t).CoreV1().ConfigMaps(namespace)
	kit.EventuallyNil(t, func() error { return configMaps.Delete(t.Context(), "mine", metav1.DeleteOptions{}) }) // RBAC needs a moment
	expect(t, mayNot("carl", namespace), configMaps.Delete(t.Context(), "theirs", metav1.DeleteOptions{}))
}

// Applications as owners are garbage-collected as usual: their dependents are deleted,
// or orphaned.
func TestGarbageCollection(t *testing.T) {
	for policy, stays := range map[metav1.DeletionPropagation]bool{
		metav1.DeletePropagationBackground: false,
		metav1.DeletePropagationForeground: false,
		metav1.DeletePropagationOrphan:     true,
	} {
		t.Run(string(policy), func(t *testing.T) {
			namespace := newNamespace(t)
			configMaps := server.CoreV1().ConfigMaps(namespace)
			owner := create(t, administrator, plain(namespace, "owner"))
			create(t, administrator, plain(namespace, "app"), annotated, func(cm *corev1.ConfigMap) {
				cm.OwnerReferences = []metav1.OwnerReference{{
					APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: new(true),
				}}
			})
			kit.Must(t, configMaps.Delete(t.Context(), "owner", metav1.DeleteOptions{PropagationPolicy: &policy}))
			server.EventuallyGone(t, kit.ConfigMaps, namespace, "owner")
			if !stays {
				server.EventuallyGone(t, kit.ConfigMaps, namespace, "app")
				return
			}
			kit.EventuallyTrue(t, "the Application still has its owner", func() bool {
				app, err := configMaps.Get(t.Context(), "app", metav1.GetOptions{})
				kit.Must(t, err)
				return len(app.OwnerReferences) == 0
			})
		})
	}
}
