package guard

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
)

// The guard of an enrolled cluster knows its Applications from the hub, and answers the API server of the cluster.
func TestGuardOfAnEnrolledCluster(t *testing.T) {
	kit.Long(t, "another control plane")
	east, err := kit.StartPlane(t.Context(), cluster.Options{PretendKubelet: true})
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, east.Stop()) })
	address, err := cluster.FreeAddress()
	kit.Must(t, err)
	spoke, err := installed.Enrol(t.Context(), east.Cluster, installation.Enrolment{
		Name: "east", EnrolArgs: []string{"--guard"}, AgentArgs: []string{"--guard-bind-address", address},
	})
	kit.Must(t, err)
	// The agent is a process, and no Pod.
	_, port, err := net.SplitHostPort(address)
	kit.Must(t, err)
	east.Kubectl(t, "patch", "service", "krake-guard-east", "--namespace=krake-agents", "--type=merge", "--patch", `{"spec": {"type": "ExternalName", "externalName": "localhost"}}`)
	east.Kubectl(t, "patch", "validatingwebhookconfiguration", "krake-guard-east", "--type=json", "--patch", fmt.Sprintf(
		`[{"op": "replace", "path": "/webhooks/0/clientConfig/service/port", "value": %[1]s}, {"op": "replace", "path": "/webhooks/1/clientConfig/service/port", "value": %[1]s}]`, port))
	east.CreateNamespace(t, "east")
	kit.Must(t, spoke.Start(t.Context()))
	t.Cleanup(func() { kit.Must(t, spoke.Stop()) })
	app := hub.CreateApp(t, kit.Application("east", "web", kit.WebManifest, kit.On("east"), kit.Annotation("guard", "deny")))
	t.Cleanup(func() {
		app.Delete(t)
		app.MustGo(t)
	})
	app.MustBe(t, application.StateRunning)

	const want = "spec.replicas is managed by Application east/web and will be set back to 1. Change it there, or hold it first: kubectl krake hold -n east web deployment/web"
	for _, arguments := range [][]string{
		{"patch", "deployment", "web", "--namespace=east", "--type=merge", "--patch", `{"spec": {"replicas": 3}}`},
		{"scale", "deployment", "web", "--namespace=east", "--replicas=3"},
	} {
		kit.Eventually(t, func() string {
			said, err := kit.TryKubectl(t.Context(), east.Cluster, "", arguments...)
			if err == nil || !strings.Contains(said, want) {
				return fmt.Sprintf("kubectl %s: %s, %v", arguments[0], said, err)
			}
			return ""
		})
	}
	east.EventuallyField(t, int64(1), kit.Deployments, "east", "web", "spec", "replicas")
}
