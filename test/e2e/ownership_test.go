package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/kit"
)

var (
	serviceAccounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	volumeClaims    = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
)

// Status has no authority. An inventory with foreign objects
// deletes none of them, neither when the spec changes, nor when the Application is deleted. A policy keeps
// all users, also administrators, from that key, so that the test forges it as the agent.
func TestForgedInventoryDeletesNothing(t *testing.T) {
	namespace := newNginx(t)
	victims := foreignObjects(t, namespace, 50)
	awaitCalm(t, namespace)
	before := auditMark(t)
	own := held(t, namespace, "nginx")

	forge(t, namespace, victims)
	respec(t, namespace, "nginx", strings.ReplaceAll(nginxManifest, "nginx:1.27", "nginx:1.28"))
	hub.EventuallyField(t, "nginx:1.28", kit.Deployments, namespace, "nginx", "spec", "template", "spec", "containers", 0, "image")
	kit.Eventually(t, func() string { return cmp.Diff(own, held(t, namespace, "nginx")) })
	withoutAgent(t, func() {
		forge(t, namespace, victims)
		hub.App(namespace, "nginx").Delete(t)
	})
	hub.EventuallyGone(t, kit.ConfigMaps, namespace, "nginx")

	for _, victim := range victims {
		checkUntouched(t, victim)
	}
	deleted := 0
	for _, r := range before.Requests(t, ofAgent) {
		if r.Verb == "delete" {
			deleted++
		}
		if r.IsWrite() && strings.HasPrefix(r.Object.Name, "foreign-") {
			t.Errorf("want no write to what is not ours, got %s", r)
		}
	}
	if deleted != 2 {
		t.Errorf("%d deletions, want those of Deployment and Service", deleted)
	}
}

// foreignObjects creates objects without an owner, and adds one that all clusters need.
func foreignObjects(t *testing.T, namespace string, count int) []*unstructured.Unstructured {
	t.Helper()
	var text strings.Builder
	for i := range count {
		kind := "ConfigMap"
		if i%2 == 0 {
			kind = "ServiceAccount"
		}
		fmt.Fprintf(&text, "---\n{apiVersion: v1, kind: %s, metadata: {name: foreign-%d}}\n", kind, i)
	}
	hub.Make(t, namespace, text.String())
	var objects []*unstructured.Unstructured
	for i := range count {
		resource := kit.ConfigMaps
		if i%2 == 0 {
			resource = serviceAccounts
		}
		objects = append(objects, hub.Get(t, resource, namespace, fmt.Sprintf("foreign-%d", i)))
	}
	return append(objects, hub.Get(t, kit.ConfigMaps, "kube-system", "extension-apiserver-authentication"))
}

// forge adds objects to the inventory of the Application nginx.
func forge(t *testing.T, namespace string, objects []*unstructured.Unstructured) {
	t.Helper()
	forged := []manifest.ID{
		{APIVersion: "apps/v1", Kind: "Deployment", Namespace: namespace, Name: "nginx"},
		{APIVersion: "v1", Kind: "Service", Namespace: namespace, Name: "nginx"},
	}
	for _, object := range objects {
		forged = append(forged, manifest.ID{
			APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName(),
		})
	}
	patch := kit.JSON(t, map[string]any{"data": map[string]any{"inventory.local": string(kit.JSON(t, forged))}})
	kit.Must(t, kit.ErrorOf(as(t, kit.LocalAgent).CoreV1().ConfigMaps(namespace).Patch(t.Context(), "nginx", types.MergePatchType, patch, metav1.PatchOptions{})))
}

// checkUntouched fails if an object's resourceVersion has changed.
func checkUntouched(t *testing.T, before *unstructured.Unstructured) {
	t.Helper()
	if before == nil {
		t.Error("an object was deleted as soon as it was created")
		return
	}
	resource := map[string]schema.GroupVersionResource{
		"ConfigMap": kit.ConfigMaps, "ServiceAccount": serviceAccounts, "Service": kit.Services,
	}[before.GetKind()]
	now := hub.Get(t, resource, before.GetNamespace(), before.GetName())
	if now == nil || now.GetResourceVersion() != before.GetResourceVersion() || now.GetUID() != before.GetUID() {
		t.Errorf("%s %s was touched or deleted: %v", before.GetKind(), before.GetName(), now)
	}
}

// None of these alone makes an object ours: the label, the label with annotations that name another object or UID, or
// the inventory. The agent makes no request about the objects of controllers, which copy its marks.
func TestCopiedMarksMakeNoObjectOurs(t *testing.T) {
	namespace := newNginx(t)
	marked := hub.Get(t, kit.Services, namespace, "nginx")
	labels := map[string]string{"krake.dev/owned-by": marked.GetLabels()["krake.dev/owned-by"]}
	owner, uid := marked.GetAnnotations()["krake.dev/owner"], marked.GetAnnotations()["krake.dev/owner-uid"]
	const otherUID = "00000000-0000-0000-0000-000000000000"
	ownerOf := func(name string) string { return strings.TrimSuffix(owner, "nginx") + name }
	var victims []*unstructured.Unstructured
	for _, f := range []struct {
		name                string
		labels, annotations map[string]string
	}{
		{"unmarked", nil, nil},
		{"labelled", labels, nil},
		{"copied", labels, map[string]string{"krake.dev/owner": owner, "krake.dev/owner-uid": uid}},
		{"outdated", labels, map[string]string{"krake.dev/owner": ownerOf("outdated"), "krake.dev/owner-uid": otherUID}},
		{"half", labels, map[string]string{"krake.dev/owner": ownerOf("half")}},
	} {
		service := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: f.name, Labels: f.labels, Annotations: f.annotations},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		}
		kit.Must(t, kit.ErrorOf(hub.CoreV1().Services(namespace).Create(t.Context(), service, metav1.CreateOptions{})))
		victims = append(victims, hub.Get(t, kit.Services, namespace, f.name))
	}
	before := auditMark(t)
	forge(t, namespace, victims[:1])
	settle(t, namespace)
	remove(t, namespace, "nginx")
	for _, victim := range victims {
		checkUntouched(t, victim)
	}
	for _, r := range before.Requests(t, ofAgent, kit.In(namespace)) {
		if r.Object.Resource == "endpointslices" || r.Object.Resource == "replicasets" {
			t.Errorf("want no request about what a controller has made, got %s", r)
		}
	}
}

// A user who may only get and patch a PersistentVolumeClaim copies the marks of an Application to it. That deletes
// nothing: the inventory does not have the object. The Application reports it, and stays ready.
func TestForgedMarksTurnNoPatchIntoADeletion(t *testing.T) {
	const claim = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: %s}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}\n"
	namespace := newNamespace(t)
	hub.Make(t, namespace, fmt.Sprintf(claim, "victim"))
	mallory := userOf(t, namespace, "persistentvolumeclaims", "get", "patch")
	createApplication(t, namespace, "app", fmt.Sprintf(claim, "own"), "")
	eventuallyReconciled(t, namespace, "app")
	own, victim := hub.Get(t, volumeClaims, namespace, "own"), hub.Get(t, volumeClaims, namespace, "victim")
	before := auditMark(t)

	marks := kit.JSON(t, map[string]any{"metadata": map[string]any{
		"labels": map[string]string{"krake.dev/owned-by": own.GetLabels()["krake.dev/owned-by"]},
		"annotations": map[string]string{
			"krake.dev/owner":     strings.TrimSuffix(own.GetAnnotations()["krake.dev/owner"], "own") + "victim",
			"krake.dev/owner-uid": own.GetAnnotations()["krake.dev/owner-uid"],
		},
	}})
	kit.Must(t, kit.ErrorOf(mallory.CoreV1().PersistentVolumeClaims(namespace).Patch(t.Context(), "victim", types.MergePatchType, marks, metav1.PatchOptions{})))
	checkNames(t, eventuallyCondition(t, namespace, "app", "Conflicted", "True", "NotInInventory"), "PersistentVolumeClaim "+namespace+"/victim")
	eventuallyCondition(t, namespace, "app", "Reconciled", "True", "Reconciled")
	awaitCalm(t, namespace)
	remove(t, namespace, "app")
	now := hub.Get(t, volumeClaims, namespace, "victim")
	if now == nil || now.GetUID() != victim.GetUID() || now.GetDeletionTimestamp() != nil {
		t.Errorf("the victim is %v", now)
	}
	for _, r := range before.Requests(t, ofAgent, kit.In(namespace), ofKind("persistentvolumeclaims")) {
		if r.Name() == "victim" {
			t.Errorf("want no request about what is not ours, got %s", r)
		}
	}
}

// Two Applications claim the same Deployment. The one that creates it keeps it, through 40 changes of the specs, 20 of
// each at the same time.
func TestFirstOfTwoClaimsWins(t *testing.T) {
	kit.Long(t, "40 changes")
	const changes = 20
	namespace := newNamespace(t)
	before := auditMark(t)
	var both sync.WaitGroup
	for _, app := range []string{"left", "right"} {
		both.Go(func() {
			claim := kit.Application(namespace, app, claimOf(app, 0))
			if _, err := hub.CoreV1().ConfigMaps(namespace).Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
				t.Errorf("create %s: %v", app, err)
				return
			}
			for n := range changes {
				if err := tryRespec(t, namespace, app, claimOf(app, n+1)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	both.Wait()
	hub.EventuallyField(t, "nginx", kit.Deployments, namespace, "nginx", "metadata", "name")
	winner, loser := "left", "right"
	owner, _, _ := strings.Cut(hub.Get(t, kit.Deployments, namespace, "nginx").GetAnnotations()["krake.dev/owner"], " ")
	if owner == namespace+"/right" {
		winner, loser = loser, winner
	}
	hub.EventuallyField(t, fmt.Sprintf("%s:%d", winner, changes), kit.Deployments, namespace, "nginx", "spec", "template", "spec", "containers", 0, "image")
	checkNames(t, eventuallyCondition(t, namespace, loser, "Conflicted", "True", "OwnedByAnotherApplication"), "Deployment "+namespace+"/nginx")
	checkNames(t, eventuallyCondition(t, namespace, loser, "Reconciled", "False", "OwnedByAnotherApplication"), "Deployment "+namespace+"/nginx", namespace+"/"+winner)
	eventuallyCondition(t, namespace, winner, "Conflicted", "False", "NoConflicts")
	if inPods == nil { // nodes do not have the images
		// Until then, the status of the winner follows the Deployment. Many
		// ReplicaSets keep the controller manager busy for longer than awaitCalm waits.
		hub.Kubectl(t, "--namespace", namespace, "rollout", "status", "deployment", "nginx", "--timeout", kit.Timeout.String())
		// A change of health alone may wait half a minute for its write, longer than awaitCalm.
		awaitCalm(t, namespace)
		eventuallyHealthy(t, namespace, winner) // the loser's status shows nothing of the object
	}

	awaitCalm(t, namespace)
	made := before.Requests(t, ofAgent, kit.Request.IsWrite, kit.In(namespace), ofKind("deployments"),
		func(r kit.Request) bool { return r.Status.Code < http.StatusMultipleChoices })
	for _, r := range made {
		if strings.Contains(string(r.Body), loser+":") {
			t.Errorf("the Deployment belongs to %s, and %s wrote it: %s", winner, loser, r)
		}
	}
	t.Logf("%d writes to the Deployment for %d changes of each of its two Applications", len(made), changes)
	checkCalm(t, auditMark(t), namespace, "once both are settled")
}

// claimOf is the manifest with which an Application claims the Deployment nginx.
func claimOf(app string, revision int) string {
	return strings.ReplaceAll(nginxDeployment(), "nginx:1.27", fmt.Sprintf("%s:%d", app, revision))
}

// A Deployment exists already and has no owner. It stays
// unchanged, unless the Application asks to adopt it. Then a first write adds the marks, and later ones
// change it. It stays when the Application is deleted, unless the Application asks for its deletion.
func TestExistingObjectIsLeftAloneUnlessAdopted(t *testing.T) {
	for _, policy := range []string{"default", "orphan", "delete"} {
		t.Run(policy, func(t *testing.T) { adopt(t, policy) })
	}
}

func adopt(t *testing.T, policy string) {
	t.Helper()
	namespace := newNamespace(t)
	manifest := strings.ReplaceAll(nginxDeployment(), "- {name: nginx, image", "- {name: mine, image")
	hub.Make(t, namespace, strings.NewReplacer("{name: nginx}", "{name: nginx, labels: {team: mine}}", "nginx:1.27", "mine:1", ", ports: [{containerPort: 80}]", "").Replace(manifest))
	found := hub.Get(t, kit.Deployments, namespace, "nginx")
	before := auditMark(t)
	var settings []kit.Option
	if policy != "default" {
		settings = append(settings, kit.Annotation("deletion-policy", policy))
	}
	createApplication(t, namespace, "nginx", manifest, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: nginx}
spec:
  template: {spec: {containers: [{image: null}, {observer_schema_list_min_length: 1, observer_schema_list_max_length: 1}]}}
`, settings...)
	checkNames(t, eventuallyCondition(t, namespace, "nginx", "Conflicted", "True", "AlreadyExists"), "Deployment "+namespace+"/nginx")
	awaitCalm(t, namespace)
	if made := repairs(t, before, namespace); len(made) > 0 {
		t.Errorf("want no write to what is not ours, got %v", made)
	}
	if now := hub.Get(t, kit.Deployments, namespace, "nginx"); now.GetGeneration() != found.GetGeneration() || len(now.GetAnnotations()) > 1 {
		t.Errorf("the Deployment was touched: generation %d, annotations %v", now.GetGeneration(), now.GetAnnotations())
	}

	hub.App(namespace, "nginx").Annotate(t, "adopt", "true")
	eventuallyReconciled(t, namespace, "nginx")
	made := eventuallyRepairs(t, before, 2, namespace)
	checkRepairs(t, made[:1], "/metadata/annotations", "/metadata/labels")
	checkRepairs(t, made[1:], "/spec/template/spec/containers/0/image")
	if notes := events(t, namespace, "Adopted"); len(notes) == 0 {
		t.Error("no Event tells of the adoption")
	}

	remove(t, namespace, "nginx")
	left := hub.Get(t, kit.Deployments, namespace, "nginx")
	switch isDeleted := policy == "delete"; {
	case isDeleted && left != nil && left.GetDeletionTimestamp() == nil:
		t.Error("the Deployment was to be deleted, and is still there")
	case !isDeleted && (left == nil || left.GetUID() != found.GetUID() || left.GetLabels()["team"] != "mine"):
		t.Errorf("the Deployment was to stay as it is, and is %v", left)
	}
}
