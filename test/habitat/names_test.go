package habitat

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/habitat"
	"github.com/krake-observer/krake-observer/test/kit"
)

// Another client's ConfigMap with the name of the Application is not touched, whatever
// it has. The Habitat reports it, and continues when it is deleted.
func TestNameIsTaken(t *testing.T) {
	kit.Long(t, "a long story of one Habitat")
	t.Parallel()
	h := newHome(t)
	theirs := map[string]object{
		"plain":   {"metadata": object{"name": "habitat-plain"}, "data": object{"a": "b"}},
		"labeled": {"metadata": object{"name": "habitat-labeled", "labels": object{"habitat": "true", "habitat-name": "labeled"}}, "data": object{"a": "b"}},
		"app": {"metadata": object{"name": "habitat-app", "annotations": object{application.FormatAnnotation: application.Format}}, "data": object{
			application.ManifestKey: "{apiVersion: v1, kind: ConfigMap, metadata: {name: of-app}, data: {a: b}}",
		}},
		"fixed": {"metadata": object{"name": "habitat-fixed"}, "immutable": true},
	}
	versions := map[string]string{}
	for _, content := range theirs {
		content["apiVersion"], content["kind"] = "v1", "ConfigMap"
		h.create(t, kit.ConfigMaps, content)
	}
	h.awaitCalm(t)
	for name := range theirs {
		versions[name] = h.get(t, kit.ConfigMaps, "habitat-"+name).GetResourceVersion()
		h.create(t, habitats, service(name, 1, nil))
	}
	for name := range theirs {
		message := h.mustSay(t, name, "Accepted", metav1.ConditionFalse, "NameConflict")
		if !strings.Contains(message, "habitat-"+name) {
			t.Errorf("the condition says %q, want the name of the ConfigMap", message)
		}
		h.mustTell(t, name, "Warning", "NameConflict", "habitat-"+name)
	}
	h.awaitCalm(t)
	for name := range theirs {
		if got := h.get(t, kit.ConfigMaps, "habitat-"+name).GetResourceVersion(); got != versions[name] {
			t.Errorf("ConfigMap habitat-%s, which is somebody else's, was written", name)
		}
		if h.get(t, kit.StatefulSets, name) != nil {
			t.Errorf("of Habitat %s a StatefulSet was made", name)
		}
		h.delete(t, kit.ConfigMaps, "habitat-"+name)
	}
	// The 30 s check of every Habitat finds that, because only ConfigMaps with the label
	// of Habitats are watched.
	for name := range theirs {
		h.mustRun(t, name)
	}
}

// The ConfigMaps that all Habitats share may also belong to another client. The
// Habitats run, and report that there is no peer file.
func TestPeerFileIsTaken(t *testing.T) {
	kit.Long(t, "each peer file is taken in turn")
	t.Parallel()
	for _, name := range []string{"habitat-peers", habitat.PeerFile} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHome(t)
			h.create(t, kit.ConfigMaps, object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name}, "data": object{"a": "b"}})
			version := h.get(t, kit.ConfigMaps, name).GetResourceVersion()
			h.run(t, service("web", 1, nil))
			h.awaitPeerFile(t, metav1.ConditionFalse, name)
			h.awaitCalm(t)
			if got := h.get(t, kit.ConfigMaps, name).GetResourceVersion(); got != version {
				t.Errorf("ConfigMap %s, which is somebody else's, was written", name)
			}
			h.delete(t, kit.ConfigMaps, name)
			h.mustHavePeer(t, 1)
			h.awaitPeerFile(t, metav1.ConditionTrue, "")
		})
	}
}

// awaitPeerFile waits until the condition PeerFileReady of the Habitat has this status, and
// its message contains a text.
func (h home) awaitPeerFile(t *testing.T, status metav1.ConditionStatus, text string) {
	t.Helper()
	kit.Eventually(t, func() string {
		if got := h.condition(t, "web", "PeerFileReady"); got.Status != status || !strings.Contains(got.Message, text) {
			return fmt.Sprintf("condition PeerFileReady is %s: %q", got.Status, got.Message)
		}
		return ""
	})
}

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
