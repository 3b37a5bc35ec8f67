package e2e

import (
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/test/kit"
)

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
