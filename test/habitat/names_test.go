package habitat

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/habitat"
	"github.com/krake-observer/krake-observer/test/kit"
)

// An existing StatefulSet without an owner, such as one of the former operator, is not
// touched. The Habitat reports the conflict. It takes the StatefulSet over, with its
// running Pods, as soon as a user asks for that.
func TestAdoption(t *testing.T) {
	kit.Long(t, "a long story of one Habitat")
	t.Parallel()
	h := newHome(t)
	content := service("web", 2, nil)
	moved := service("web", 2, nil)
	moved["metadata"].(object)["namespace"] = h.namespace
	workload := parsed(t, moved).Workload(habitat.DefaultFilesImage)
	workload["spec"].(object)["replicas"] = int64(1)
	workload["metadata"].(object)["annotations"] = object{"note": "mine"}
	theirs := h.create(t, kit.StatefulSets, workload)
	h.eventuallyField(t, 1, kit.StatefulSets, "web", "status", "readyReplicas")
	pods := uids(h.pods(t, "web"))
	h.create(t, habitats, content)
	h.mustSay(t, "web", "Ready", metav1.ConditionFalse, "AlreadyExists")
	kit.Eventually(t, func() string {
		live := h.get(t, habitats, "web")
		message, _ := kit.Field(live, "status", "message").(string)
		if !hasAll(message, []string{"does not belong to this Application", "StatefulSet", "web"}) || kit.Field(live, "status", "state") == "RUNNING" {
			return fmt.Sprintf("the status does not name the conflict: %v", kit.Field(live, "status"))
		}
		return ""
	})
	h.awaitCalm(t)
	live := h.get(t, kit.StatefulSets, "web")
	if live.GetGeneration() != theirs.GetGeneration() || live.GetUID() != theirs.GetUID() || live.GetLabels()[application.OwnedByLabel] != "" {
		t.Error("the StatefulSet of somebody else was written")
	}
	h.kubectl(t, "annotate", "configmap", "habitat-web", application.AdoptAnnotation+"=true")
	h.mustRun(t, "web")
	h.mustBeCarriedOut(t, "web")
	h.mustStay(t, kit.StatefulSets, "web", theirs.GetUID())
	if got := kit.Field(h.get(t, kit.StatefulSets, "web"), "metadata", "annotations", "note"); got != "mine" {
		t.Errorf("its annotation is %v, want mine", got)
	}
	for name, uid := range pods {
		if uids(h.pods(t, "web"))[name] != uid {
			t.Errorf("Pod %s was replaced", name)
		}
	}
	// Fields that users add to the Application stay.
	h.edit(t, "web", `{"count": 3}`)
	h.mustRun(t, "web")
	if got := h.get(t, kit.ConfigMaps, "habitat-web").GetAnnotations()[application.AdoptAnnotation]; got != "true" {
		t.Errorf("the user's annotation is %q", got)
	}
}
