package policies

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/test/kit"
)

// Messages of the policy krake-configmaps about Applications.
const (
	allowed = ""

	mutable      = "an Application cannot be immutable, because agents write its status into it: leave the field out"
	isOne        = "an Application cannot be turned back into a plain ConfigMap: delete it"
	elsewhere    = "an Application cannot be in kube-system, krake-system or krake-agents, which the webhook does not see: use another namespace"
	tooMany      = "an Application has at most 1000 keys in data and binaryData, 1000 labels, 1000 finalizers and 100 owners: leave out what is not its own"
	agentsKeys   = "only agents write the keys status, status.learned, status.last_observed_manifest and inventory.*: leave them as they are stored, and out of a new Application"
	agentsLabel  = "only agents set the label krake.dev/state: leave it as it is stored, and out of a new Application"
	addFinalizer = "only agents add finalizers that end in .krake.dev/resources: leave them as they are stored, and out of a new Application"
	addOwner     = "an owner may have the Application deleted: to add one wants the right to delete Applications"
	giveUp       = "krake.dev/force-delete gives up on what the Application holds: it wants the right to delete Applications"
	keepsLabels  = "the Application is being deleted: leave the labels of its clusters as they are stored"
	keepsPolicy  = "the Application is being deleted: to change krake.dev/deletion-policy, krake.dev/hooks, or how it is shut down " +
		"wants the right to delete Applications"
	goesOn        = "the Application is being deleted: leave its format, its cluster and its service account as they are"
	holdBack      = "%s: to hold an Application back wants verb hold on applications.krake.dev: have the ClusterRole krake-application-hold bound"
	holder        = "krake.dev/held-by names the user who holds the Application back: leave it as it is stored, or out"
	dropFinalizer = "the agent removes its finalizer when its objects are gone: wait for it, or, if its cluster is lost, " +
		"delete the Application, or move it, and annotate it with krake.dev/force-delete and the name of the cluster"

	notHeld         = "an agent changes only Applications that carry its label holder.krake.dev/%s: have a user create or edit the Application"
	usersKeys       = "an agent writes its own inventory and, if it is the one of the Application's cluster, the status, and no other key: have a user change the spec"
	usersMetadata   = "an agent leaves annotations, ownerReferences and immutable of an Application as they are: have a user change them"
	usersLabels     = "an agent removes its own holder label and, if it is the one of the Application's cluster, sets krake.dev/state, and no other label: have a user change it"
	othersFinalizer = "an agent removes its own finalizer and, if it is the one of the Application's cluster, adds it, and no other: leave the others to those who set them"
)

var (
	noHolderLocal = fmt.Sprintf(notHeld, "local")
	noHolderLoc   = fmt.Sprintf(notHeld, "loc")
)

// state is that of the ConfigMap before a write.
type state = *made

type made struct {
	in func(t *testing.T, namespace string) *corev1.ConfigMap
}

// after is the state after a change.
func (s state) after(change func(t *testing.T, cm *corev1.ConfigMap) *corev1.ConfigMap) state {
	return &made{func(t *testing.T, namespace string) *corev1.ConfigMap {
		t.Helper()
		return change(t, s.in(t, namespace))
	}}
}

func annotated(cm *corev1.ConfigMap) { annotate("krake.dev/application", "v1")(cm) }

// bare is an Application with only what makes it one.
var bare = &made{func(t *testing.T, namespace string) *corev1.ConfigMap {
	t.Helper()
	return create(t, administrator, plain(namespace, "app"), annotated)
}}

// barePlain is a ConfigMap without data.
var barePlain = &made{func(t *testing.T, namespace string) *corev1.ConfigMap {
	t.Helper()
	return create(t, administrator, plain(namespace, "app"))
}}

// fullPlain is a ConfigMap that has all keys that agents write into Applications.
var fullPlain = &made{func(t *testing.T, namespace string) *corev1.ConfigMap {
	t.Helper()
	return create(t, administrator, plain(namespace, "app"),
		data("status", "{}"), data("inventory.local", "[]"), binary("status.learned", "x"),
		label("krake.dev/state", "RUNNING"), addFinalizerOf("local"))
}}

// admitted is an Application after the webhook.
var admitted = &made{func(t *testing.T, namespace string) *corev1.ConfigMap {
	t.Helper()
	return create(t, administrator, plain(namespace, "app"), annotated,
		data("spec.manifest", "[]"), data("status.mangled_observer_schema", "[]"), data("status.last_applied_manifest", "[]"),
		label("krake.dev/cluster", "local"), label("holder.krake.dev/local", "true"))
}}

// moved is an Application that moved from the cluster other to local. Both hold it, and
// each agent has written its keys. It has an entry in every field.
var moved = &made{func(t *testing.T, namespace string) *corev1.ConfigMap {
	t.Helper()
	cm := create(t, administrator, plain(namespace, "app"), annotated, annotate("krake.dev/cluster", "other"), annotate("note", "mine"),
		data("spec.manifest", "[]"), data("status.mangled_observer_schema", "[]"), data("status.last_applied_manifest", "[]"),
		data("theirs", "x"), binary("spec.csar", "x"), label("team", "blue"),
		label("krake.dev/cluster", "other"), label("holder.krake.dev/other", "true"),
		func(cm *corev1.ConfigMap) { cm.Finalizers = []string{"example.org/theirs"} })
	cm = mustUpdate(t, agent("other"), cm, addFinalizerOf("other"), data("inventory.other", "[]"))
	cm = mustUpdate(t, administrator, cm, annotate("krake.dev/cluster", "local"),
		label("krake.dev/cluster", "local"), label("holder.krake.dev/local", "true"))
	return mustUpdate(t, agent("local"), cm, addFinalizerOf("local"), label("krake.dev/state", "RUNNING"),
		data("status", "{}"), binary("status.learned", "x"), data("status.last_observed_manifest", "[]"), data("inventory.local", "[]"))
}}

func dropFinalizerOf(cluster string) edit {
	return func(cm *corev1.ConfigMap) {
		cm.Finalizers = slices.DeleteFunc(cm.Finalizers, func(f string) bool { return f == cluster+".krake.dev/resources" })
	}
}

func addFinalizerOf(cluster string) edit {
	return func(cm *corev1.ConfigMap) { cm.Finalizers = append(cm.Finalizers, cluster+".krake.dev/resources") }
}

func set[V any](in *map[string]V, key string, value V) {
	if *in == nil {
		*in = map[string]V{}
	}
	(*in)[key] = value
}

func data(key, value string) edit {
	return func(cm *corev1.ConfigMap) { set(&cm.Data, key, value) }
}

func binary(key, value string) edit {
	return func(cm *corev1.ConfigMap) { set(&cm.BinaryData, key, []byte(value)) }
}

func label(key, value string) edit {
	return func(cm *corev1.ConfigMap) { set(&cm.Labels, key, value) }
}

func annotate(key, value string) edit {
	return func(cm *corev1.ConfigMap) { set(&cm.Annotations, key, value) }
}

func noData(key string) edit {
	return func(cm *corev1.ConfigMap) { delete(cm.Data, key) }
}

func noBinary(key string) edit {
	return func(cm *corev1.ConfigMap) { delete(cm.BinaryData, key) }
}

func noLabel(key string) edit {
	return func(cm *corev1.ConfigMap) { delete(cm.Labels, key) }
}

func noAnnotation(key string) edit {
	return func(cm *corev1.ConfigMap) { delete(cm.Annotations, key) }
}

// ownedByDefault adds an owner that stays: the namespace default. The garbage collector
// deletes dependents of a missing owner.
func ownedByDefault(t *testing.T) edit {
	t.Helper()
	owner, err := server.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
	kit.Must(t, err)
	return func(cm *corev1.ConfigMap) {
		cm.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: owner.Name, UID: owner.UID}}
	}
}

func immutable(cm *corev1.ConfigMap) { cm.Immutable = new(true) }

// write is a row of a table: who changes what, and the policy's message.
type write struct {
	what   string
	who    identity
	stored state
	change []edit
	want   string
}

var gone = map[state]state{}

// deleted is a state that is being deleted, with a finalizer. It is the same for the same state.
func deleted(stored state) state {
	if gone[stored] == nil {
		gone[stored] = stored.after(remove)
	}
	return gone[stored]
}

// changed is a state after a user's change.
func changed(stored state, edits ...edit) state { return changedBy(administrator, stored, edits...) }

// changedBy is a state after a change by an identity.
func changedBy(who identity, stored state, edits ...edit) state {
	return stored.after(func(t *testing.T, cm *corev1.ConfigMap) *corev1.ConfigMap {
		t.Helper()
		return mustUpdate(t, who, cm, edits...)
	})
}

// check does each write. It is a dry run if there is a stored state, which the next write of the table may have, too. Without
// one it is a creation.
func check(t *testing.T, writes []write) {
	t.Helper()
	namespace := newNamespace(t)
	var last state
	var stored *corev1.ConfigMap
	defer letGo(t, namespace)
	for _, w := range writes {
		t.Run(w.who.name+": "+w.what, func(t *testing.T) {
			if w.stored == nil || w.stored != last {
				letGo(t, namespace)
				if last = w.stored; last != nil {
					stored = last.in(t, namespace)
				}
			}
			if w.stored != nil {
				expect(t, w.want, tryUpdate(t, w.who, with(stored.DeepCopy(), w.change...)))
				if w.who.namespace != "" {
					expectTheSameInGo(t, w, stored)
				}
				return
			}
			cm := with(plain(namespace, "app"), w.change...)
			expect(t, w.want, kit.ErrorOf(w.who.mustClient(t).CoreV1().ConfigMaps(namespace).Create(t.Context(), cm, metav1.CreateOptions{})))
			expectThere(t, namespace, w.want == allowed)
		})
	}
}

// expectTheSameInGo checks that the webhook, which does not review agents' writes,
// would decide the same.
func expectTheSameInGo(t *testing.T, w write, stored *corev1.ConfigMap) {
	t.Helper()
	changed := with(stored.DeepCopy(), w.change...)
	if !application.IsApplication(changed) && !application.IsApplication(stored) {
		return // outside the webhook's scope
	}
	refusals := mutate.CheckAgentUpdate(changed, stored, w.who.name)
	if (len(refusals) == 0) != (w.want == allowed) {
		t.Errorf("mutate.CheckAgentUpdate says %v", refusals)
	}
}

func expect(t *testing.T, want string, err error) {
	t.Helper()
	if got := verdict(err); got != want {
		t.Errorf("the policy says\n%q, want\n%q", got, want)
	}
}

// letGo deletes the ConfigMap of a row, with its finalizers.
func letGo(t *testing.T, namespace string) {
	t.Helper()
	configMaps := server.CoreV1().ConfigMaps(namespace)
	cm, err := configMaps.Get(t.Context(), "app", metav1.GetOptions{})
	if err != nil {
		return // it never existed, or was deleted automatically
	}
	if len(cm.Finalizers) == 0 {
		kit.Must(t, configMaps.Delete(t.Context(), "app", metav1.DeleteOptions{}))
		return
	}
	if cm.DeletionTimestamp == nil {
		cm = remove(t, cm)
	}
	_, err = update(t, administrator, cm, annotate("krake.dev/force-delete", "true"), func(cm *corev1.ConfigMap) { cm.Finalizers = nil })
	if !apierrors.IsNotFound(err) { // the garbage collector ends a deletion in the foreground
		kit.Must(t, err)
	}
}

// Only an agent writes the keys that the agent acts on. No administrator may, neither in data nor in binaryData, and not before the ConfigMap is an Application.
func TestOnlyAgentsWriteWhatAgentsActOn(t *testing.T) {
	check(t, []write{
		{"create an Application with nothing in it", administrator, nil, []edit{annotated}, allowed},
		{"create one as the webhook completes it", namespaceEditor, nil, []edit{
			annotated, data("spec.manifest", "[]"), data("status.mangled_observer_schema", "[]"), data("status.last_applied_manifest", "[]"),
			label("krake.dev/cluster", "local"), label("holder.krake.dev/local", "true"),
		}, allowed},
		{"create one with status", administrator, nil, []edit{annotated, data("status", "{}")}, agentsKeys},
		{"create one with something learned", administrator, nil, []edit{annotated, data("status.learned", "[]")}, agentsKeys},
		{"create one with something observed", administrator, nil, []edit{annotated, data("status.last_observed_manifest", "[]")}, agentsKeys},
		{"create one with an inventory", namespaceEditor, nil, []edit{annotated, data("inventory.local", "[]")}, agentsKeys},
		{"create one with compressed status", administrator, nil, []edit{annotated, binary("status", "x")}, agentsKeys},
		{"create one in a state", administrator, nil, []edit{annotated, label("krake.dev/state", "RUNNING")}, agentsLabel},
		{"create one with the finalizer of an agent", administrator, nil, []edit{annotated, addFinalizerOf("local")}, addFinalizer},
		{"create one with a finalizer of somebody else", administrator, nil, []edit{
			annotated, func(cm *corev1.ConfigMap) { cm.Finalizers = []string{"example.org/theirs"} },
		}, allowed},
		{"create one with keys that resemble the agents'", administrator, nil, []edit{
			annotated, data("statuses", "x"), data("status.", "x"), data("my.inventory.local", "x"), binary("inventory", "x"),
		}, allowed},

		{"edit the spec", namespaceEditor, moved, []edit{data("spec.manifest", "[1]"), data("status.last_applied_manifest", "[1]")}, allowed},
		{"edit a template, with what the webhook makes of it", namespaceEditor, moved, []edit{
			data("spec.tosca", "x"), data("status.translated_manifest", "[1]"), data("status.mangled_observer_schema", "[1]"),
		}, allowed},
		{"edit everything that is a user's", administrator, moved, []edit{
			noData("theirs"), noBinary("spec.csar"), noLabel("team"), label("team2", "red"), noAnnotation("note"),
			annotate("krake.dev/cluster", "third"), label("holder.krake.dev/third", "true"),
			func(cm *corev1.ConfigMap) {
				cm.Finalizers = []string{"local.krake.dev/resources", "example.org/others", "other.krake.dev/resources"}
			},
		}, allowed},
		{"change status", administrator, moved, []edit{data("status", "[]")}, agentsKeys},
		{"change what was learned, which is compressed", administrator, moved, []edit{binary("status.learned", "y")}, agentsKeys},
		{"remove all that is compressed", administrator, moved, []edit{func(cm *corev1.ConfigMap) { cm.BinaryData = nil }}, agentsKeys},
		{"move a document to the other map", administrator, moved, []edit{noData("status"), binary("status", "{}")}, agentsKeys},
		{"change the inventory", namespaceEditor, moved, []edit{data("inventory.local", "[1]")}, agentsKeys},
		{"change the state", administrator, moved, []edit{label("krake.dev/state", "FAILED")}, agentsLabel},
		{"add a state", administrator, admitted, []edit{label("krake.dev/state", "RUNNING")}, agentsLabel},
		{"add the finalizer of an agent", administrator, moved, []edit{addFinalizerOf("third")}, addFinalizer},
		{"remove the finalizer of an agent", administrator, moved, []edit{dropFinalizerOf("local")}, dropFinalizer},

		{"make a ConfigMap an Application", namespaceEditor, barePlain, []edit{annotated}, allowed},
		{"make one an Application that has forged keys", administrator, fullPlain, []edit{
			annotated, noLabel("krake.dev/state"), dropFinalizerOf("local"), noBinary("status.learned"),
		}, agentsKeys},
		{"make one an Application that has a forged compressed key", administrator, fullPlain, []edit{
			annotated, noLabel("krake.dev/state"), dropFinalizerOf("local"), noData("status"), noData("inventory.local"),
		}, agentsKeys},
		{"make one an Application that has a forged label", administrator, fullPlain, []edit{
			annotated, dropFinalizerOf("local"), noData("status"), noData("inventory.local"), noBinary("status.learned"),
		}, agentsLabel},
		{"make one an Application that has a forged finalizer", administrator, fullPlain, []edit{
			annotated, noLabel("krake.dev/state"), noData("status"), noData("inventory.local"), noBinary("status.learned"),
		}, addFinalizer},
		{"make one an Application, and drop what is forged, as the webhook does", administrator, fullPlain, []edit{
			annotated, noLabel("krake.dev/state"), dropFinalizerOf("local"), noData("status"), noData("inventory.local"), noBinary("status.learned"),
		}, allowed},
	})
}

// No client makes an Application immutable, at any time: its agent could no longer write that the objects are gone, and no user
// could delete it.
func TestNoApplicationIsImmutable(t *testing.T) {
	for _, who := range []identity{administrator, namespaceEditor} {
		check(t, []write{
			{"create one", who, nil, []edit{annotated, immutable}, mutable},
			{"make one immutable", who, moved, []edit{immutable}, mutable},
			{"make one immutable that is being deleted", who, deleted(moved), []edit{immutable}, mutable},
			{"make an immutable ConfigMap an Application", who, changed(barePlain, immutable), []edit{annotated}, mutable},
		})
	}
}

// The finalizer stays unless two things are requested: the deletion, and to give up on
// the cluster.
func TestForceDelete(t *testing.T) {
	force := annotate("krake.dev/force-delete", "true")
	check(t, []write{
		{"remove the finalizer of a deleting Application", administrator, deleted(moved), []edit{dropFinalizerOf("local")}, dropFinalizer},
		{"give up on a deleting Application", administrator, deleted(moved), []edit{force, dropFinalizerOf("local"), dropFinalizerOf("other")}, allowed},
		{"give up, and remove the finalizer later", namespaceEditor, changed(deleted(moved), force), []edit{dropFinalizerOf("local")}, allowed},
		{"ask for it before the deletion", administrator, deleted(changed(moved, force)), []edit{dropFinalizerOf("local")}, allowed},
		{"say no", administrator, deleted(moved), []edit{annotate("krake.dev/force-delete", "false"), dropFinalizerOf("local")}, dropFinalizer},
		{"say yes, but delete nothing", administrator, moved, []edit{force, dropFinalizerOf("local")}, dropFinalizer},
		{"take the wish back while using it", administrator, changed(deleted(moved), force), []edit{
			noAnnotation("krake.dev/force-delete"), dropFinalizerOf("local"),
		}, dropFinalizer},
		{"add a finalizer by force", administrator, changed(moved, force), []edit{addFinalizerOf("third")}, addFinalizer},
		{"give up without the right to delete", configMapEditor, deleted(moved), []edit{force, dropFinalizerOf("local"), dropFinalizerOf("other")}, giveUp},
		{"ask for it without the right", configMapEditor, moved, []edit{force}, giveUp},
		{"ask for it in a new one without the right", configMapEditor, nil, []edit{annotated, force}, giveUp},
		{"leave it as it is without the right", configMapEditor, changed(moved, force), []edit{label("team", "red")}, allowed},
		{"take it back without the right", configMapEditor, changed(moved, force), []edit{noAnnotation("krake.dev/force-delete")}, allowed},
		{"say anything but yes without the right", configMapEditor, moved, []edit{annotate("krake.dev/force-delete", "false")}, allowed},
		{"say of a deleting one that another user holds it back", namespaceEditor, deleted(moved), []edit{annotate("krake.dev/held-by", "anna")}, holder},
		{"say of a deleting one that oneself does", namespaceEditor, deleted(moved), []edit{annotate("krake.dev/held-by", "edith")}, allowed},
		{"move a deleting one", administrator, deleted(moved), []edit{annotate("krake.dev/cluster", "third")}, goesOn},
		{"change the format of a deleting one", administrator, deleted(moved), []edit{annotate("krake.dev/application", "v2")}, goesOn},
		{"change the identity of a deleting one", administrator, deleted(moved), []edit{annotate("krake.dev/service-account", "x")}, goesOn},
		{"take the holder's label off a deleting one", administrator, deleted(moved), []edit{noLabel("holder.krake.dev/local")}, keepsLabels},
		{"add a holder to a deleting one", administrator, deleted(moved), []edit{label("holder.krake.dev/third", "true")}, keepsLabels},
		{"change the label of the cluster of a deleting one", administrator, deleted(moved), []edit{label("krake.dev/cluster", "third")}, keepsLabels},
		{"change the spec of a deleting one", administrator, deleted(moved), []edit{data("spec.manifest", "[1]")}, allowed},
		{"forge status by force", administrator, changed(deleted(moved), force), []edit{data("inventory.local", "[1]")}, agentsKeys},
		{"drop all that is held, as the webhook does", namespaceEditor, deleted(moved), []edit{force, dropAll("local"), dropAll("other")}, allowed},
		{"drop what is held, and say nothing", administrator, deleted(moved), []edit{noData("inventory.other")}, agentsKeys},
	})
}

// dropAll removes all entries that a cluster holds objects, as the webhook does.
func dropAll(cluster string) edit {
	return func(cm *corev1.ConfigMap) { application.GiveUp(cm, cluster) }
}

// The policy and the webhook read the same clusters from an annotation that gives them
// up.
func TestForceDeleteIsReadAlike(t *testing.T) {
	namespace := newNamespace(t)
	for what, state := range map[string]state{"living": moved, "deleting": deleted(moved)} {
		stored := state.in(t, namespace)
		for _, value := range []string{
			"true", "false", "other", "local", "local,other", " other , third", "other,", ",", "true,other", "TRUE", "other;local", "others", "*",
		} {
			wish := with(plain("x", "app"), annotate("krake.dev/cluster", "local"), annotate("krake.dev/force-delete", value),
				label("holder.krake.dev/local", "true"), label("holder.krake.dev/other", "true"))
			givenUp := application.GivenUp(wish, what == "deleting")
			for _, cluster := range []string{"local", "other"} {
				want := dropFinalizer
				if slices.Contains(givenUp, cluster) {
					want = allowed
				}
				change := with(stored.DeepCopy(), annotate("krake.dev/force-delete", value), dropFinalizerOf(cluster))
				if got := verdict(tryUpdate(t, namespaceEditor, change)); got != want {
					t.Errorf("%q, %s, %s: the policy says %q, want %q", value, what, cluster, got, want)
				}
			}
		}
		letGo(t, namespace)
	}
}

// The objects on single clusters are given up by the clusters' names: on those that an
// Application has left, and on all of a deleted one.
func TestForceDeleteOfClusters(t *testing.T) {
	force := func(clusters string) edit { return annotate("krake.dev/force-delete", clusters) }
	back := annotate("krake.dev/cluster", "other")
	check(t, []write{
		{"give up what it has left", namespaceEditor, moved, []edit{force("other"), dropAll("other")}, allowed},
		{"give it up among others", namespaceEditor, moved, []edit{force("third, other"), dropAll("other")}, allowed},
		{"give it up while moving away", administrator, moved, []edit{force("local"), back, dropAll("local")}, allowed},
		{"give up what is compressed", administrator, changedBy(agent("other"), moved, noData("inventory.other"), binary("inventory.other", "x")), []edit{
			force("other"), dropAll("other"), noBinary("inventory.other"),
		}, allowed},
		{"give it up, and let the webhook do the rest later", namespaceEditor, changed(moved, force("other")), []edit{dropAll("other")}, allowed},
		{"give up where a deleting one is", namespaceEditor, deleted(moved), []edit{force("local"), dropAll("local")}, allowed},

		{"without the right", configMapEditor, moved, []edit{force("other")}, giveUp},
		{"one more without the right", configMapEditor, changed(moved, force("third")), []edit{force("third,other")}, giveUp},
		{"say nothing, and drop the finalizer", administrator, moved, []edit{dropFinalizerOf("other")}, dropFinalizer},
		{"say nothing, and drop the inventory", administrator, moved, []edit{noData("inventory.other")}, agentsKeys},
		{"name one that begins so, and drop the finalizer", administrator, moved, []edit{force("othe,other2"), dropFinalizerOf("other")}, dropFinalizer},
		{"name one, and drop those of all", administrator, moved, []edit{force("other"), dropAll("other"), noData("inventory.local")}, agentsKeys},
		{"name one, and change its inventory", administrator, moved, []edit{force("other"), data("inventory.other", "[1]")}, agentsKeys},
		{"name one, and move its inventory to the other map", administrator, moved, []edit{
			force("other"), noData("inventory.other"), binary("inventory.other", "x"),
		}, agentsKeys},
		{"name one, and drop the status", administrator, moved, []edit{force("other"), dropAll("other"), noData("status")}, agentsKeys},

		{"give up where it lives", administrator, moved, []edit{force("local"), dropFinalizerOf("local")}, dropFinalizer},
		{"give up where it comes back to", administrator, moved, []edit{force("other"), back, dropFinalizerOf("other")}, dropFinalizer},
		{"give up where it is by default", administrator, changed(moved, noAnnotation("krake.dev/cluster")), []edit{force("local"), dropFinalizerOf("local")}, dropFinalizer},
		{"name so many that nobody reads them", administrator, moved, []edit{force("other" + strings.Repeat(",x", 500)), dropFinalizerOf("other")}, dropFinalizer},

		{"take the label of another off a deleting one", administrator, deleted(moved), []edit{force("third"), noLabel("holder.krake.dev/other")}, keepsLabels},
		{"change the label of one that is given up", administrator, deleted(moved), []edit{force("other"), label("holder.krake.dev/other", "no")}, keepsLabels},
	})
}

// The deletion policy is set before the deletion, or by a user who may delete the
// Application: the webhook does not review it any more.
func TestDeletionPolicyOfADeletingApplication(t *testing.T) {
	orphan, none := annotate("krake.dev/deletion-policy", "orphan"), noAnnotation("krake.dev/deletion-policy")
	orphaned := deleted(changed(moved, orphan))
	check(t, []write{
		{"orphan after all", configMapEditor, deleted(moved), []edit{orphan}, keepsPolicy},
		{"delete after all, by default", configMapEditor, orphaned, []edit{none}, keepsPolicy},
		{"orphan after all, with the right to delete", namespaceEditor, deleted(moved), []edit{orphan}, allowed},
		{"delete after all, with the right to delete", namespaceEditor, orphaned, []edit{none}, allowed},
		{"leave it", configMapEditor, orphaned, []edit{orphan, annotate("note", "x")}, allowed},
		{"while it lives, which is the webhook's business", configMapEditor, moved, []edit{orphan}, allowed},
	})
}

// The shutdown is configured before the deletion, or by a user who may delete the
// Application. Without its hook, or with another strategy, objects that should stay
// would be deleted. Another request to shut down is harmless.
func TestHooksOfADeletingApplication(t *testing.T) {
	hooked := changed(moved, annotate("krake.dev/hooks", "shutdown"), annotate("krake.dev/shutdown-grace-time", "1h"))
	check(t, []write{
		{"take the hook off after all", configMapEditor, deleted(hooked), []edit{noAnnotation("krake.dev/hooks")}, keepsPolicy},
		{"delete anyway", configMapEditor, deleted(hooked), []edit{annotate("krake.dev/shutdown-failure-strategy", "delete")}, keepsPolicy},
		{"give it no time", configMapEditor, deleted(hooked), []edit{annotate("krake.dev/shutdown-grace-time", "1s")}, keepsPolicy},
		{"ask it no more than once", configMapEditor, deleted(hooked), []edit{annotate("krake.dev/shutdown-retry-count", "0")}, keepsPolicy},
		{"ask it once more", configMapEditor, deleted(hooked), []edit{annotate("krake.dev/shutdown-retry", "2")}, allowed},
		{"take the hook off, with the right to delete", namespaceEditor, deleted(hooked), []edit{noAnnotation("krake.dev/hooks")}, allowed},
		{"leave it", configMapEditor, deleted(hooked), []edit{annotate("krake.dev/hooks", "shutdown"), annotate("note", "x")}, allowed},
		{"while it lives, which is the webhook's business", configMapEditor, hooked, []edit{noAnnotation("krake.dev/hooks")}, allowed},
	})
}

// The garbage collector deletes objects whose owners are gone, regardless of who set
// the owners.
func TestOwners(t *testing.T) {
	owned, other := ownedByDefault(t), ownedByDefault(t)
	none := func(cm *corev1.ConfigMap) { cm.OwnerReferences = nil }
	check(t, []write{
		{"add an owner", configMapEditor, moved, []edit{owned}, addOwner},
		{"add an owner with the right to delete", namespaceEditor, moved, []edit{owned}, allowed},
		{"create one with an owner", configMapEditor, nil, []edit{annotated, owned}, allowed},
		{"make one that has an owner an Application", configMapEditor, changed(barePlain, owned), []edit{annotated}, allowed},
		{"take the owner away", configMapEditor, changed(moved, owned), []edit{none}, allowed},
		{"leave the owner", configMapEditor, changed(moved, owned), []edit{other, label("team", "red")}, allowed},
		{"name the owner so that it is not found", configMapEditor, changed(moved, owned), []edit{func(cm *corev1.ConfigMap) {
			cm.OwnerReferences[0].Name = "absent"
		}}, addOwner},
		{"name a kind of the owner that there is none of", configMapEditor, changed(moved, owned), []edit{func(cm *corev1.ConfigMap) {
			cm.OwnerReferences[0].Kind = "Node"
		}}, addOwner},
		{"put another owner in its place", configMapEditor, changed(moved, owned), []edit{func(cm *corev1.ConfigMap) {
			cm.OwnerReferences[0].UID = "00000000-0000-0000-0000-000000000000"
		}}, addOwner},
	})
}

// Only its deletion ends an Application.
func TestApplicationStaysOneUntilItIsDeleted(t *testing.T) {
	check(t, []write{
		{"strip the annotation", administrator, bare, []edit{noAnnotation("krake.dev/application")}, isOne},
		{"strip the annotation of a deleting one", administrator, deleted(moved), []edit{noAnnotation("krake.dev/application")}, isOne},
		{"strip the annotation of what it holds", agent("local"), moved, []edit{noAnnotation("krake.dev/application")}, isOne},
		{"change the format version, which is the webhook's business", administrator, bare, []edit{annotate("krake.dev/application", "v2")}, allowed},
		{"strip another annotation", administrator, moved, []edit{noAnnotation("note")}, allowed},
	})
}

// An attacker controls an agent. The policies let it
// change neither the objects of other clusters nor the reports of other agents.
func TestAgentChangesNoSpecAndNoOtherStatus(t *testing.T) {
	local, other := agent("local"), agent("other")
	owned := ownedByDefault(t)
	check(t, []write{
		{"create an Application", local, nil, []edit{annotated, label("holder.krake.dev/local", "true")}, noHolderLocal},
		{"create an Application that carries our marks", local, nil, []edit{annotated, marked}, noHolderLocal},
		{"make a ConfigMap an Application", local, barePlain, []edit{annotated}, noHolderLocal},
		{"make one that it made an Application", local, changed(barePlain, marked), []edit{annotated}, noHolderLocal},
		{"make one an Application that has its label", local, changed(barePlain, label("holder.krake.dev/local", "true")), []edit{annotated}, noHolderLocal},
		{"write status of what was never admitted", local, bare, []edit{data("status", "{}")}, noHolderLocal},
		{"bring the label oneself", local, bare, []edit{label("holder.krake.dev/local", "true")}, noHolderLocal},
		{"write what another holds", other, admitted, []edit{data("inventory.other", "[]")}, fmt.Sprintf(notHeld, "other")},
		{"be an agent whose name begins as the holder's", agent("loc"), moved, []edit{data("inventory.loc", "[]")}, noHolderLoc},
		{"have the group without a name", impostor, moved, []edit{data("status", "[]")}, fmt.Sprintf(notHeld, "")},
		{"have the name without the group, and edit the spec", namesake, moved, []edit{data("spec.manifest", "[1]")}, usersKeys},
		{"have the name without the group, and write status", namesake, moved, []edit{data("status", "[]")}, allowed},

		{"record everything that is an agent's", local, admitted, []edit{
			addFinalizerOf("local"), label("krake.dev/state", "RUNNING"), data("status", "{}"), data("status.learned", "[]"),
			data("status.last_observed_manifest", "[]"), data("status.last_applied_manifest", "[1]"), data("inventory.local", "[]"),
			data("status.mangled_observer_schema", "[1]"), data("status.translated_manifest", "[1]"),
		}, allowed},
		{"record what was behind a URL, compressed", local, moved, []edit{
			noData("status.mangled_observer_schema"), binary("status.mangled_observer_schema", "x"), binary("status.translated_manifest", "x"),
		}, allowed},
		{"change and compress what it recorded", local, moved, []edit{
			label("krake.dev/state", "FAILED"), data("status", "[]"), noBinary("status.learned"), noData("status.last_applied_manifest"),
			binary("status.last_applied_manifest", "x"), noData("inventory.local"), binary("inventory.local", "x"),
		}, allowed},
		{"an Application that names no cluster is local's", local, changed(moved, noAnnotation("krake.dev/cluster")), []edit{data("status", "[]")}, allowed},
		{"an empty name is local's too", local, changed(moved, annotate("krake.dev/cluster", "")), []edit{data("status", "[]")}, allowed},
		{"and not other's", other, changed(moved, annotate("krake.dev/cluster", "")), []edit{data("status", "[]")}, usersKeys},
		{"let go of a deleting one", local, deleted(moved), []edit{
			dropFinalizerOf("local"), noLabel("holder.krake.dev/local"), noData("inventory.local"), label("krake.dev/state", "DELETING"),
		}, allowed},

		{"edit the spec", local, moved, []edit{data("spec.manifest", "[1]")}, usersKeys},
		{"change the archive", local, moved, []edit{binary("spec.csar", "y")}, usersKeys},
		{"remove the archive", local, moved, []edit{noBinary("spec.csar")}, usersKeys},
		{"change the template", local, moved, []edit{data("spec.tosca", "x"), data("status.translated_manifest", "[1]")}, usersKeys},
		{"write a document that there is none of", local, moved, []edit{data("status.translated", "[1]")}, usersKeys},
		{"change what is nobody's", local, moved, []edit{data("theirs", "y")}, usersKeys},
		{"remove all data", local, moved, []edit{func(cm *corev1.ConfigMap) { cm.Data = nil }}, usersKeys},
		{"change another's inventory", local, moved, []edit{data("inventory.other", "[1]")}, usersKeys},
		{"write an inventory whose name begins as its own", local, moved, []edit{data("inventory.local2", "[]")}, usersKeys},

		{"as the former holder, write its inventory", other, moved, []edit{data("inventory.other", "[1]")}, allowed},
		{"as the former holder, let go", other, moved, []edit{
			noData("inventory.other"), dropFinalizerOf("other"), noLabel("holder.krake.dev/other"),
		}, allowed},
		{"as the former holder, write status", other, moved, []edit{data("status", "[]")}, usersKeys},
		{"as the former holder, write a translation", other, moved, []edit{data("status.translated_manifest", "[1]")}, usersKeys},
		{"as the former holder, change the state", other, moved, []edit{label("krake.dev/state", "FAILED")}, usersLabels},
		{"as the former holder, come back", other, changedBy(other, moved, dropFinalizerOf("other")), []edit{addFinalizerOf("other")}, othersFinalizer},

		{"change an annotation", local, moved, []edit{annotate("krake.dev/cluster", "other")}, usersMetadata},
		{"add an annotation", local, admitted, []edit{annotate("krake.dev/adopt", "true")}, usersMetadata},
		{"remove an annotation", local, moved, []edit{noAnnotation("note")}, usersMetadata},
		{"give it an owner", local, moved, []edit{owned}, usersMetadata},
		{"take its owner away", local, changed(moved, owned), []edit{func(cm *corev1.ConfigMap) { cm.OwnerReferences = nil }}, usersMetadata},
		{"make it immutable", local, moved, []edit{immutable}, mutable},
		{"remove a label", local, moved, []edit{noLabel("team")}, usersLabels},
		{"add a label", local, admitted, []edit{label("team", "red")}, usersLabels},
		{"change the label of the cluster", local, moved, []edit{label("krake.dev/cluster", "other")}, usersLabels},
		{"change its own holder label", local, moved, []edit{label("holder.krake.dev/local", "no")}, usersLabels},
		{"remove another's holder label", local, moved, []edit{noLabel("holder.krake.dev/other")}, usersLabels},
		{"make another a holder", local, moved, []edit{label("holder.krake.dev/third", "true")}, usersLabels},
		{"remove another's finalizer", local, moved, []edit{dropFinalizerOf("other")}, othersFinalizer},
		{"add another's finalizer", local, moved, []edit{addFinalizerOf("third")}, othersFinalizer},
		{"remove somebody's finalizer", local, moved, []edit{func(cm *corev1.ConfigMap) {
			cm.Finalizers = []string{"other.krake.dev/resources", "local.krake.dev/resources"}
		}}, othersFinalizer},
		{"remove its finalizer, while the Application lives", local, moved, []edit{dropFinalizerOf("local")}, allowed},
	})
}

// The webhook does not review the namespaces that a cluster needs to start, so that no
// Application may be there. All other writes to them are allowed.
func TestNoApplicationWhereTheWebhookDoesNotLook(t *testing.T) {
	for _, namespace := range []string{"kube-system", "krake-system", "krake-agents"} {
		configMaps := server.CoreV1().ConfigMaps(namespace)
		expect(t, elsewhere, kit.ErrorOf(configMaps.Create(t.Context(), with(plain(namespace, "app"), annotated), metav1.CreateOptions{})))

		cm := create(t, administrator, plain(namespace, "app"))
		expect(t, elsewhere, kit.ErrorOf(update(t, administrator, cm, annotated)))
		cm = mustUpdate(t, administrator, cm, data("status", "{}"), label("krake.dev/state", "x"))
		kit.Must(t, configMaps.Delete(t.Context(), cm.Name, metav1.DeleteOptions{}))
	}
	for _, namespace := range []string{"default", "kube-public"} {
		create(t, administrator, plain(namespace, "app"), annotated)
		kit.Must(t, server.CoreV1().ConfigMaps(namespace).Delete(t.Context(), "app", metav1.DeleteOptions{}))
	}
}

// An Application that existed before the policies can only be deleted.
func TestAnEarlyApplicationCanGo(t *testing.T) {
	configMaps := server.CoreV1().ConfigMaps("kube-system")
	early, err := configMaps.Get(t.Context(), "early", metav1.GetOptions{})
	kit.Must(t, err)
	expect(t, elsewhere, kit.ErrorOf(update(t, administrator, early, data("spec.manifest", "[]"))))
	expect(t, isOne, kit.ErrorOf(update(t, administrator, early, noAnnotation("krake.dev/application"))))
	early = remove(t, early)
	mustUpdate(t, administrator, early, func(cm *corev1.ConfigMap) { cm.Finalizers = nil })
}

// No expression fails over a missing or present field, in either version. A check after
// all tests verifies that none did.
func TestAbsentMaps(t *testing.T) {
	namespace := newNamespace(t)
	places := map[string]edit{
		"data":         data("x", "x"),
		"binaryData":   binary("y", "y"),
		"labels":       label("x", "x"),
		"more labels":  label("holder.krake.dev/local", "true"),
		"annotations":  annotate("note", "x"),
		"finalizers":   func(cm *corev1.ConfigMap) { cm.Finalizers = append(cm.Finalizers, "example.org/theirs") },
		"owners":       ownedByDefault(t),
		"the wish":     annotate("krake.dev/force-delete", "true"),
		"the cluster":  annotate("krake.dev/cluster", "other"),
		"empty labels": func(cm *corev1.ConfigMap) { cm.Labels = map[string]string{} },
	}
	for _, before := range slices.Sorted(maps.Keys(places)) {
		cm := create(t, administrator, plain(namespace, "app"), annotated, places[before])
		for _, after := range slices.Sorted(maps.Keys(places)) {
			fresh := with(plain(namespace, "app"), annotated, places[after])
			fresh.ResourceVersion, fresh.UID = cm.ResourceVersion, cm.UID
			if err := tryUpdate(t, agent("local"), fresh); err != nil && verdict(err) == "" {
				t.Errorf("%s, then %s: %v", before, after, err)
			}
			kit.Must(t, tryUpdate(t, administrator, fresh))
		}
		letGo(t, namespace)
	}
}
