package e2e

import (
	"strings"
	"testing"

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
