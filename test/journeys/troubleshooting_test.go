package journeys

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/krake-observer/krake-observer/test/kit"
	"github.com/krake-observer/krake-observer/test/session"
)

// outage is the namespace with the Application, called web, that was carried out before
// something went down.
const outage = "outage"

// What an administrator sees, and does, while a part of the installation is down: one
// journey after the other, for what is down is down for all.
func TestOutages(t *testing.T) {
	kit.Long(t, "parts of the installation are down")
	installed := install(t)
	t.Cleanup(func() { server.Kubectl(t, "delete", "-k", folderOf(installed)) })
	t.Cleanup(func() { server.Kubectl(t, "delete", "namespace", outage) })
	if err := newNamespace(t.Context(), outage, ""); err != nil {
		t.Fatal(err)
	}

	carryOut(t)
	travel(t, installed, "", "outages/troubleshooting-certificate.txtar")
	if err := installed.StopWebhook(); err != nil {
		t.Fatal(err)
	}
	travel(t, installed, "", "outages/troubleshooting-webhook-down.txtar")
	if err := installed.StartWebhook(t.Context()); err != nil {
		t.Fatal(err)
	}

	travel(t, installed, "", "outages/troubleshooting-not-admitted.txtar")

	carryOut(t)
	if err := installed.StopAgent(); err != nil {
		t.Fatal(err)
	}
	travel(t, installed, "", "outages/troubleshooting-agent-down.txtar")
	if err := installed.StartAgent(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.Kubectl(t, "wait", "--for=jsonpath={.data.colour}=blue", "configmap/settings", "--namespace", outage, "--timeout=2m")
}

// carryOut creates the Application, and returns when its object is there.
func carryOut(t *testing.T) {
	t.Helper()
	const web = `apiVersion: v1
kind: ConfigMap
metadata:
  name: web
  annotations:
    krake.dev/application: v1
data:
  spec.manifest: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: settings}
    data: {colour: blue}
`
	file := filepath.Join(t.TempDir(), "web.yaml")
	if err := os.WriteFile(file, []byte(web), 0o600); err != nil {
		t.Fatal(err)
	}
	server.Kubectl(t, "create", "-f", file, "--namespace", outage)
	err := session.Await(t.Context(), "the agent has carried out "+outage+"/web", func() (bool, error) {
		state, err := try(t.Context(), "get", "configmap", "web", "--namespace", outage, `--output=jsonpath={.metadata.labels.krake\.dev/state}`)
		return state == "RUNNING", err
	})
	if err != nil {
		t.Fatal(err)
	}
}
