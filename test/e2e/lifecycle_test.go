package e2e

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/test/kit"
)

// An object that another client deletes is created again, with a new UID.
func TestADeletedObjectComesBack(t *testing.T) {
	namespace := newNginx(t)
	before := hub.Get(t, kit.Services, namespace, "nginx").GetUID()
	hub.Kubectl(t, "--namespace", namespace, "delete", "service", "nginx")
	kit.EventuallyTrue(t, "the Service is not back", func() bool {
		service := hub.Get(t, kit.Services, namespace, "nginx")
		return service != nil && service.GetUID() != before
	})
	eventuallyNotes(t, namespace, "Recreated", func(notes []string) bool { return len(notes) == 1 })
}

// The deletion of an Application first deletes its objects, and no others.
func TestDeletionTakesTheObjectsAlong(t *testing.T) {
	namespace := newNginx(t)
	hub.Kubectl(t, "--namespace", namespace, "create", "deployment", "mine", "--image=x")
	hub.Kubectl(t, "--namespace", namespace, "delete", "configmap", "nginx")
	for _, resource := range []string{"deployment/nginx", "service/nginx", "configmap/nginx"} {
		text, err := tryKubectl(t, "", "--namespace", namespace, "get", resource)
		if err == nil || !strings.Contains(text, "NotFound") {
			t.Errorf("%s is still there: %s", resource, text)
		}
	}
	if hub.Get(t, kit.Deployments, namespace, "mine") == nil {
		t.Error("a Deployment of somebody else is gone")
	}
}

// A change of the spec reaches the objects: an object that is removed from the manifest
// is deleted, and learned values stay.
func TestAChangedSpecIsCarriedOut(t *testing.T) {
	namespace := newNginx(t)
	applyByForce(t, namespace, "nginx", strings.ReplaceAll(nginxManifest, "nginx:1.27", "nginx:1.28"), "")
	hub.EventuallyField(t, "nginx:1.28", kit.Deployments, namespace, "nginx", "spec", "template", "spec", "containers", 0, "image")
	if notes := events(t, namespace, "DriftReverted"); len(notes) > 0 {
		t.Errorf("a change of the spec was taken for a drift: %v", notes)
	}

	applyByForce(t, namespace, "nginx", nginxDeployment(), "")
	hub.EventuallyGone(t, kit.Services, namespace, "nginx")
	kit.Eventually(t, func() string {
		if text, _ := kit.Field(hub.Get(t, kit.ConfigMaps, namespace, "nginx"), "data", "inventory.local").(string); strings.Contains(text, "Service") {
			return "the inventory still has the Service: " + text
		}
		return ""
	})
}

func applyByForce(t *testing.T, namespace, name, manifest, schema string) {
	t.Helper()
	hub.KubectlWith(t, applicationYAML(t, namespace, name, manifest, schema), "apply", "--server-side", "--force-conflicts", "-f", "-")
}

// Values that were learned from the API's answer survive a change of the spec.
func TestLearnedValuesSurviveAChangedSpec(t *testing.T) {
	namespace := newSong(t)
	applyByForce(t, namespace, "music", strings.ReplaceAll(songManifest, "key1: kilestbo", "key1: other"), songSchema)
	hub.EventuallyField(t, "other", songs, namespace, "top50", "spec", "key1")
	hub.Change(t, songs, namespace, "top50", `{"spec": {"key3": "x"}}`)
	hub.EventuallyField(t, "kilestlai", songs, namespace, "top50", "spec", "key3")
}

// An existing object that is not ours is neither changed nor deleted.
func TestAForeignObjectIsLeftAlone(t *testing.T) {
	namespace := newNamespace(t)
	hub.Kubectl(t, "--namespace", namespace, "create", "deployment", "nginx", "--image=mine")
	createApplication(t, namespace, "nginx", nginxManifest, "")
	eventuallyState(t, "FAILED", namespace, "nginx")
	eventuallyCondition(t, namespace, "nginx", "Ready", "False", "AlreadyExists")
	if hub.Get(t, kit.Services, namespace, "nginx") == nil {
		t.Error("the Service was not created: one object must not hold up the others")
	}
	hub.Kubectl(t, "--namespace", namespace, "delete", "configmap", "nginx")
	deployment := hub.Get(t, kit.Deployments, namespace, "nginx")
	if got := kit.Field(deployment, "spec", "template", "spec", "containers", 0, "image"); got != "mine" {
		t.Errorf("image of the foreign Deployment is %v, want mine", got)
	}
}

// The label by which the informers select is restored; its loss does not count as a
// deletion.
func TestALostLabelIsRestored(t *testing.T) {
	namespace := newNginx(t)
	before := hub.Get(t, kit.Deployments, namespace, "nginx")
	hub.Kubectl(t, "--namespace", namespace, "label", "deployment/nginx", "krake.dev/owned-by-")
	hub.EventuallyField(t, kit.Field(before, "metadata", "labels", "krake.dev/owned-by"), kit.Deployments, namespace, "nginx", "metadata", "labels", "krake.dev/owned-by")
	if hub.Get(t, kit.Deployments, namespace, "nginx").GetUID() != before.GetUID() {
		t.Error("the Deployment was created anew")
	}
}

// A ConfigMap that was never admitted has no authority: no agent sees it.
func TestAPlainConfigMapIsNobodysBusiness(t *testing.T) {
	namespace := newNamespace(t)
	hub.Kubectl(t, "--namespace", namespace, "create", "configmap", "plain", "--from-literal=spec.manifest="+nginxManifest)
	cm := hub.Get(t, kit.ConfigMaps, namespace, "plain")
	if len(cm.GetLabels()) > 0 || len(cm.GetFinalizers()) > 0 {
		t.Errorf("a plain ConfigMap was changed: %v", cm)
	}
	list, err := hub.AppsV1().Deployments(namespace).List(t.Context(), metav1.ListOptions{})
	kit.Must(t, err)
	if len(list.Items) > 0 {
		t.Errorf("it was carried out: %v", list.Items)
	}
}
