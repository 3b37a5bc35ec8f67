package kubectl

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/test/kit"
)

// outage is the namespace with the Application web, which was carried out before the
// outage.
const outage = "outage"

// What an administrator sees and does while a part of the installation is down. The
// sessions run one after the other, because an outage affects all.
func TestOutages(t *testing.T) {
	kit.Long(t, "parts of the installation are down")
	namespaceFor(t, outage)

	carryOut(t)
	play(t, "", "testdata/alone/troubleshooting-certificate.txtar")
	kit.Must(t, installed.StopWebhook())
	play(t, "", "testdata/alone/troubleshooting-webhook-down.txtar")
	kit.Must(t, installed.StartWebhook(t.Context()))

	play(t, "", "testdata/alone/troubleshooting-not-admitted.txtar")

	carryOut(t)
	kit.Must(t, installed.StopAgent())
	play(t, "", "testdata/alone/troubleshooting-agent-down.txtar")
	kit.Must(t, installed.StartAgent(t.Context()))
	hub.Kubectl(t, "wait", "--for=jsonpath={.data.colour}=blue", "configmap/settings", "--namespace", outage, "--timeout=2m")
}

// carryOut creates the Application, and returns when its object exists.
func carryOut(t *testing.T) {
	t.Helper()
	hub.CreateApp(t, kit.Application(outage, "web", `apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {colour: blue}
`))
	kit.Must(t, kit.Wait(t.Context(), "the agent has carried out "+outage+"/web", func() (bool, error) {
		state, err := try(t.Context(), "get", "configmap", "web", "--namespace", outage, `--output=jsonpath={.metadata.labels.krake\.dev/state}`)
		return state == "RUNNING", err
	}))
}

// An administrator removes everything in the documented order: nothing remains, and nothing
// blocks. Then the output of make install.yaml can be applied: server-side apply accepts it
// with every field known and without a warning, and the restricted namespaces admit its Pods.
func TestUninstallAndInstall(t *testing.T) {
	kit.Long(t, "everything is taken away")
	kit.Must(t, installed.StopHabitat()) // it would end without its rights
	play(t, "", "testdata/alone/uninstall.txtar")
	hub.Kubectl(t, "delete", "customresourcedefinition", "habitats.habitat.sh") // the Habitat controllers have registered it
	checkGone(t)
	kit.Must(t, errors.Join(installed.StopAgent(), installed.StopWebhook()))

	install := rendered(t)
	apply := []string{"apply", "--server-side", "--validate=strict", "-f", install}
	for _, what := range []string{"at first", "again"} {
		for line := range strings.Lines(hub.Kubectl(t, apply...)) {
			if !strings.HasSuffix(line, " serverside-applied\n") {
				t.Errorf("%s: %s", what, line)
			}
		}
	}
	for _, name := range []string{"krake-system/krake-webhook", "krake-agents/krake-agent"} {
		namespace, deployment, _ := strings.Cut(name, "/")
		if level := hub.Kubectl(t, "get", "namespace", namespace, "-o", `jsonpath={.metadata.labels.pod-security\.kubernetes\.io/enforce}`); level != "restricted" {
			t.Errorf("namespace %s enforces %q", namespace, level)
		}
		kit.Eventually(t, func() string {
			pods := hub.Kubectl(t, "get", "pods", "--namespace", namespace, "-l", "app.kubernetes.io/name="+deployment,
				"-o", `jsonpath={range .items[*]}{.spec.containers[0].imagePullPolicy} {end}`)
			if pods != "IfNotPresent IfNotPresent " {
				return name + " has Pods that pull " + pods + ": " + hub.Kubectl(t, "get", "events", "--namespace", namespace)
			}
			return ""
		})
	}
	if events := hub.Kubectl(t, "get", "events", "-A", "--field-selector", "type=Warning,reason=FailedCreate"); strings.Contains(events, "PodSecurity") {
		t.Errorf("Pods were refused:\n%s", events)
	}
	hub.Kubectl(t, "delete", "-f", install)
	checkGone(t)
}

// checkGone fails if anything of an installation remains.
func checkGone(t *testing.T) {
	t.Helper()
	const kinds = "namespaces,clusterroles,clusterrolebindings,mutatingwebhookconfigurations,validatingwebhookconfigurations," +
		"validatingadmissionpolicies,validatingadmissionpolicybindings,priorityclasses,customresourcedefinitions"
	if left := hub.Kubectl(t, "get", kinds, "-l", "app.kubernetes.io/part-of=krake-observer", "-o", "name", "--ignore-not-found"); left != "" {
		t.Errorf("the cluster still has\n%s", left)
	}
}

// rendered returns a file with the output of make install.yaml.
func rendered(t *testing.T) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "run", "../../manifests/render")
	var problems strings.Builder
	command.Stderr = &problems
	text, err := command.Output()
	if err != nil {
		t.Fatalf("render: %v\n%s", err, &problems)
	}
	path := filepath.Join(t.TempDir(), "install.yaml")
	kit.Must(t, os.WriteFile(path, text, 0o600))
	return path
}
