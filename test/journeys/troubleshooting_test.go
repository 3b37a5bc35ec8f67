package journeys

import (
	"testing"

	"github.com/krake-observer/krake-observer/test/kit"
)

// outage is the namespace with the Application web, which was carried out before the
// outage.
const outage = "outage"

// What an administrator sees and does while a part of the installation is down. The
// journeys run one after the other, because an outage affects all.
func TestOutages(t *testing.T) {
	kit.Long(t, "parts of the installation are down")
	installed := installAndDelete(t)
	t.Cleanup(func() { server.Kubectl(t, "delete", "namespace", outage) })
	kit.Must(t, newNamespace(t.Context(), outage, ""))

	carryOut(t)
	travel(t, installed, "", "outages/troubleshooting-certificate.txtar")
	kit.Must(t, installed.StopWebhook())
	travel(t, installed, "", "outages/troubleshooting-webhook-down.txtar")
	kit.Must(t, installed.StartWebhook(t.Context()))

	travel(t, installed, "", "outages/troubleshooting-not-admitted.txtar")

	carryOut(t)
	kit.Must(t, installed.StopAgent())
	travel(t, installed, "", "outages/troubleshooting-agent-down.txtar")
	kit.Must(t, installed.StartAgent(t.Context()))
	server.Kubectl(t, "wait", "--for=jsonpath={.data.colour}=blue", "configmap/settings", "--namespace", outage, "--timeout=2m")
}

// carryOut creates the Application, and returns when its object exists.
func carryOut(t *testing.T) {
	t.Helper()
	server.CreateApp(t, kit.Application(outage, "web", `apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: blue}
`))
	kit.Must(t, kit.Wait(t.Context(), "the agent has carried out "+outage+"/web", func() (bool, error) {
		state, err := try(t.Context(), "get", "configmap", "web", "--namespace", outage, `--output=jsonpath={.metadata.labels.krake\.dev/state}`)
		return state == "RUNNING", err
	}))
}
