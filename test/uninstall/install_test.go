package uninstall

import (
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/test/kit"
)

// Server-side apply accepts the rendered file at once, with every field known and
// without a warning. Namespaces are restricted: their Pods are admitted.
func TestInstallFile(t *testing.T) {
	install := rendered(t)
	apply := []string{"apply", "--server-side", "--validate=strict", "-f", install}
	for _, what := range []string{"at first", "again"} {
		for line := range strings.Lines(server.Kubectl(t, apply...)) {
			if !strings.HasSuffix(line, " serverside-applied\n") {
				t.Errorf("%s: %s", what, line)
			}
		}
	}
	for _, name := range []string{"krake-system/krake-webhook", "krake-agents/krake-agent"} {
		namespace, deployment, _ := strings.Cut(name, "/")
		if level := server.Kubectl(t, "get", "namespace", namespace, "-o", `jsonpath={.metadata.labels.pod-security\.kubernetes\.io/enforce}`); level != "restricted" {
			t.Errorf("namespace %s enforces %q", namespace, level)
		}
		kit.Eventually(t, func() string {
			pods := server.Kubectl(t, "get", "pods", "--namespace", namespace, "-l", "app.kubernetes.io/name="+deployment,
				"-o", `jsonpath={range .items[*]}{.spec.containers[0].imagePullPolicy} {end}`)
			if pods != "IfNotPresent IfNotPresent " {
				return name + " has Pods that pull " + pods + ": " + server.Kubectl(t, "get", "events", "--namespace", namespace)
			}
			return ""
		})
	}
	if events := server.Kubectl(t, "get", "events", "-A", "--field-selector", "type=Warning,reason=FailedCreate"); strings.Contains(events, "PodSecurity") {
		t.Errorf("Pods were refused:\n%s", events)
	}
	server.Kubectl(t, "delete", "-f", install)
	checkGone(t)
}
