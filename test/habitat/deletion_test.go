package habitat

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/krake-observer/krake-observer/pkg/habitat"
	"github.com/krake-observer/krake-observer/test/kit"
)

// stateful is a Habitat that refers to objects which are not its own: a claim, and
// Secrets.
func stateful(name string) object {
	return service(name, 2, object{
		"persistentStorage": object{"size": "1Gi", "storageClassName": "", "mountPath": "/data"},
		"service":           with(name, "standalone", object{"configSecretName": name + "-config"}),
	})
}

// "Deleting the Habitat deletes its workload; claims and Secrets stay", in the background,
// as kubectl does, and in the foreground, where the Habitat is deleted last.
func TestDeletion(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	for _, cascade := range []string{"background", "foreground"} {
		name := cascade[:4]
		h.secret(t, name+"-config", "user.toml")
		h.run(t, stateful(name))
		kept := map[string]types.UID{}
		for _, claim := range []string{"persistent-" + name + "-0", "persistent-" + name + "-1"} {
			kept[claim] = h.get(t, claims, claim).GetUID()
		}
		secret := h.get(t, kit.Secrets, name+"-config").GetUID()
		h.kubectl(t, "delete", "hab", name, "--cascade="+cascade)
		if cascade == "foreground" {
			if live := h.get(t, kit.StatefulSets, name); live != nil {
				t.Errorf("the Habitat has gone, and the StatefulSet is still there, deleted at %v", live.GetDeletionTimestamp())
			}
		}
		h.mustGo(t, kit.ConfigMaps, "habitat-"+name)
		h.mustGo(t, kit.StatefulSets, name)
		kit.Eventually(t, func() string {
			if pods := h.pods(t, name); len(pods) > 0 {
				return fmt.Sprintf("there are still Pods: %v", slices.Sorted(maps.Keys(pods)))
			}
			return ""
		})
		for claim, uid := range kept {
			h.mustStay(t, claims, claim, uid)
		}
		h.mustStay(t, kit.Secrets, name+"-config", secret)
		h.mustGo(t, kit.ConfigMaps, habitat.PeerFile)
	}
}

// "kubectl delete --cascade=orphan" leaves the objects of the Habitat: the StatefulSet
// stays unchanged, and is still repaired, because its Application stays. A new Habitat
// of the same name takes both over.
func TestOrphans(t *testing.T) {
	kit.Long(t, "a long story of one Habitat")
	t.Parallel()
	h := newHome(t)
	h.run(t, service("web", 2, nil))
	set, cm, pods := h.get(t, kit.StatefulSets, "web").GetUID(), h.get(t, kit.ConfigMaps, "habitat-web").GetUID(), uids(h.pods(t, "web"))
	h.kubectl(t, "delete", "hab", "web", "--cascade=orphan")
	h.mustGo(t, habitats, "web")
	h.awaitCalm(t)
	h.patch(t, kit.StatefulSets, "web", "hand", `{"spec": {"replicas": 5}}`)
	h.eventuallyField(t, 2, kit.StatefulSets, "web", "spec", "replicas")
	h.mustStay(t, kit.ConfigMaps, "habitat-web", cm)
	if owners := h.get(t, kit.ConfigMaps, "habitat-web").GetOwnerReferences(); len(owners) > 0 {
		t.Errorf("the Application belongs to %v", owners)
	}

	again := h.create(t, habitats, service("web", 2, object{"image": "registry.test/hab/web:2"}))
	h.mustRoll(t, "web", "registry.test/hab/web:2")
	h.mustRun(t, "web")
	h.mustBelong(t, "web", again.GetUID())
	h.mustStay(t, kit.StatefulSets, "web", set)
	for name, uid := range uids(h.pods(t, "web")) {
		if pods[name] == uid {
			t.Errorf("Pod %s is of the former image", name)
		}
	}
	h.mustOwn(t, "web")
	h.mustHavePeer(t, 2)
	h.delete(t, habitats, "web")
	h.mustGo(t, kit.StatefulSets, "web")
}

// mustBelong waits until the Habitat with this UID controls the Application.
func (h home) mustBelong(t *testing.T, name string, uid types.UID) {
	t.Helper()
	kit.Eventually(t, func() string { return h.belongs(t, name, uid) })
}

// belongs returns a complaint unless the Habitat with this UID controls the
// Application, and the label names it.
func (h home) belongs(t *testing.T, name string, uid types.UID) string {
	t.Helper()
	cm := h.get(t, kit.ConfigMaps, "habitat-"+name)
	if cm == nil {
		return "there is no Application of Habitat " + name
	}
	controller := metav1.GetControllerOf(cm)
	if controller == nil || controller.UID != uid || controller.Name != name || len(cm.GetOwnerReferences()) != 1 ||
		!ptr.Deref(controller.BlockOwnerDeletion, false) || cm.GetLabels()["habitat-name"] != name {
		return fmt.Sprintf("the Application, labeled %v, belongs to %v, want Habitat %s %s alone", cm.GetLabels(), cm.GetOwnerReferences(), name, uid)
	}
	return ""
}

// The deletion of a namespace with Habitats ends, and nothing is created in it
// meanwhile.
func TestNamespaceIsDeleted(t *testing.T) {
	kit.Long(t, "a namespace takes long to go")
	t.Parallel()
	h := newHome(t)
	var names []string
	for i := range 5 {
		name := fmt.Sprintf("web-%d", i)
		h.create(t, habitats, service(name, 2, nil))
		names = append(names, name)
	}
	h.create(t, habitats, old("flat", 2))
	h.mustRun(t, append(names, "flat")...)
	kit.Must(t, h.CoreV1().Namespaces().Delete(t.Context(), h.namespace, metav1.DeleteOptions{}))
	h.EventuallyGone(t, kit.Namespaces, "", h.namespace)
}
