package uninstall

import (
	"strings"
	"testing"
)

// What is rendered is applied at once, with every field known, by server-side apply, and
// the API server has nothing to say about it. Namespaces are restricted: their Pods are
// let in.
func TestInstallFile(t *testing.T) {
	install := rendered(t)
	apply := []string{"apply", "--server-side", "--validate=strict", "-f", install}
	for _, what := range []string{"at first", "again"} {
		for line := range strings.Lines(kubectl(t, apply...)) {
			if !strings.HasSuffix(line, " serverside-applied\n") {
				t.Errorf("%s: %s", what, line)
			}
		}
	}
	for _, name := range []string{"krake-system/krake-webhook", "krake-agents/krake-agent"} {
		namespace, deployment, _ := strings.Cut(name, "/")
		if level := kubectl(t, "get", "namespace", namespace, "-o", `jsonpath={.metadata.labels.pod-security\.kubernetes\.io/enforce}`); level != "restricted" {
			t.Errorf("namespace %s enforces %q", namespace, level)
		}
		eventually(t, func() string {
			pods := kubectl(t, "get", "pods", "--namespace", namespace, "-l", "app.kubernetes.io/name="+deployment,
				"-o", `jsonpath={range .items[*]}{.spec.containers[0].imagePullPolicy} {end}`)
			if pods != "IfNotPresent IfNotPresent " {
				return name + " has Pods that pull " + pods + ": " + kubectl(t, "get", "events", "--namespace", namespace)
			}
			return ""
		})
	}
	if events := kubectl(t, "get", "events", "-A", "--field-selector", "type=Warning,reason=FailedCreate"); strings.Contains(events, "PodSecurity") {
		t.Errorf("Pods were refused:\n%s", events)
	}
	kubectl(t, "delete", "-f", install)
	checkGone(t)
}
