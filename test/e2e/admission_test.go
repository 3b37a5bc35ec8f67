package e2e

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/krake-observer/krake-observer/test/kit"
)

// A status in a user's request is not stored, neither at creation nor later.
func TestForgedStatusIsThrownAway(t *testing.T) {
	namespace := newNamespace(t)
	forged := `
apiVersion: v1
kind: ConfigMap
metadata:
  name: nginx
  annotations: {krake.dev/application: v1}
  labels: {krake.dev/state: RUNNING, holder.krake.dev/other: "true"}
  finalizers: [other.krake.dev/resources]
data:
  spec.manifest: '{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80}]}}'
  status.learned: '[forged]'
  status.last_applied_manifest: '[{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}}]'
  inventory.local: '[{"apiVersion": "v1", "kind": "Service", "name": "victim"}]'
`
	hub.KubectlWith(t, forged, "--namespace", namespace, "create", "-f", "-")
	eventuallyState(t, "RUNNING", namespace, "nginx")
	hub.Kubectl(t, "--namespace", namespace, "patch", "configmap", "nginx", "--type=merge", "--patch",
		`{"data": {"status.learned": "[forged]", "inventory.local": "[forged]", "status.last_applied_manifest": "[]"}}`)
	cm := hub.Get(t, kit.ConfigMaps, namespace, "nginx")
	if text := strings.Join([]string{
		cm.GetAnnotations()["krake.dev/application"], cm.GetLabels()["holder.krake.dev/other"], strings.Join(cm.GetFinalizers(), ","),
	}, " "); text != "v1  local.krake.dev/resources" {
		t.Errorf("annotation, foreign holder and finalizers are %q", text)
	}
	want := parse(t, `[{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80}]}}]`)
	if diff := cmp.Diff(want, document(t, namespace, "nginx", "status.last_applied_manifest")); diff != "" {
		t.Errorf("last applied manifest (-want +got):\n%s", diff)
	}
	if learned := document(t, namespace, "nginx", "status.learned"); learned != nil {
		t.Errorf("learned is %v, want nothing", learned)
	}
	want = parse(t, `[{apiVersion: v1, kind: Service, namespace: `+namespace+`, name: a}]`)
	if diff := cmp.Diff(want, held(t, namespace, "nginx")); diff != "" {
		t.Errorf("inventory (-want +got):\n%s", diff)
	}
}

// An Application stays one until it is deleted.
func TestTheAnnotationCannotBeRemoved(t *testing.T) {
	namespace := newNginx(t)
	want := `The Application "nginx" is invalid: metadata.annotations[krake.dev/application]: Forbidden: an Application cannot be turned back into a plain ConfigMap: delete it
`
	checkSays(t, false, want, "", "--namespace", namespace, "annotate", "configmap", "nginx", "krake.dev/application-")
}

// A ConfigMap becomes an Application when it is annotated.
func TestAnnotatingMakesAnApplication(t *testing.T) {
	namespace := newNamespace(t)
	hub.Kubectl(t, "--namespace", namespace, "create", "configmap", "nginx", "--from-literal=spec.manifest="+nginxManifest)
	hub.Kubectl(t, "--namespace", namespace, "annotate", "configmap", "nginx", "krake.dev/application=v1")
	eventuallyState(t, "RUNNING", namespace, "nginx")
	hub.EventuallyField(t, 2, kit.Deployments, namespace, "nginx", "spec", "replicas")
}
