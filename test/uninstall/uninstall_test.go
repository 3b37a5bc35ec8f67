package uninstall

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
)

const application = `
apiVersion: v1
kind: ConfigMap
metadata: {name: web, namespace: demo, annotations: {krake.dev/application: v1}}
data:
  spec.manifest: |
    apiVersion: v1
    kind: ConfigMap
    metadata: {name: settings}
    data: {colour: blue}
`

// An operator holds, suspends and resumes, and then removes everything in the
// documented order: nothing remains, and nothing blocks.
func TestFromHoldToUninstall(t *testing.T) {
	kit.Long(t, "everything is taken away")
	installed, err := installation.InstallWith(t.Context(), server.Cluster, installation.Options{Overlay: "default"}, os.Stderr)
	kit.Must(t, err)
	server.Kubectl(t, "create", "namespace", "demo")
	server.KubectlWith(t, application, "create", "-f", "-")
	kit.Eventually(t, isColour(t, "blue"))

	t.Run("hold", holds)
	t.Run("suspend", suspends)
	t.Run("rights", refuses)
	t.Run("uninstall", uninstalls)

	kit.Must(t, errors.Join(installed.StopAgent(), installed.StopWebhook()))
	server.Kubectl(t, "delete", "-k", filepath.Join(installed.Manifests(), "run"))
	server.Kubectl(t, "delete", "namespace", "demo")
	checkGone(t)
}

func isColour(t *testing.T, want string) func() string {
	t.Helper()
	return func() string {
		got := server.Kubectl(t, "get", "configmap", "settings", "--namespace", "demo", "-o", "jsonpath={.data.colour}", "--ignore-not-found")
		if got != want {
			return fmt.Sprintf("the colour is %q, want %q", got, want)
		}
		return ""
	}
}

// paint changes an observed field as another client.
func paint(t *testing.T, colour string) {
	t.Helper()
	server.Kubectl(t, "patch", "configmap", "settings", "--namespace", "demo", "--type=merge", "--patch", `{"data": {"colour": "`+colour+`"}}`)
}

// isDriftHeld reports whether the status has the hold, and the object too, or neither.
func isDriftHeld(t *testing.T, want, onObject bool) func() string {
	t.Helper()
	return func() string {
		status := server.Kubectl(t, "get", "configmap", "web", "--namespace", "demo", "-o", "jsonpath={.data.status}")
		held := regexp.MustCompile(`"reason":\s*"Held"`).MatchString(status)
		if held != want || strings.Contains(status, `"asked"`) != onObject {
			return fmt.Sprintf("drift held: %t, want %t; hold on the object: want %t: %s", held, want, onObject, status)
		}
		return ""
	}
}

// says compares the output of a command with a pattern.
func says(t *testing.T, status int, pattern string, arguments ...string) {
	t.Helper()
	text, got := krake(t, append([]string{"--namespace", "demo"}, arguments...)...)
	if got != status || !regexp.MustCompile("^"+pattern+"$").MatchString(text) {
		t.Errorf("kubectl krake %s: exit status %d, want %d; says\n%swant\n%s", strings.Join(arguments, " "), got, status, text, pattern)
	}
}

// someTime matches a time as in annotations.
const someTime = `20..-..-..T..:..:..Z`

func holds(t *testing.T) {
	says(t, 0, "application.krake.dev/web held until "+someTime+` \(server dry run\)\n`, "hold", "web", "--dry-run=server")
	says(t, 0, "application.krake.dev/web held until "+someTime+`\n`, "hold", "web", "--for=10m")
	paint(t, "red")
	kit.Eventually(t, isDriftHeld(t, true, false))
	if problem := isColour(t, "red")(); problem != "" {
		t.Error(problem)
	}
	says(t, 0, `application.krake.dev/web resumed\n`, "resume", "web")
	kit.Eventually(t, isColour(t, "blue"))
	kit.Eventually(t, isDriftHeld(t, false, false))

	says(t, 0, "configmap/settings held until "+someTime+`\n`, "hold", "web", "cm/settings", "--for=10m")
	paint(t, "green")
	kit.Eventually(t, isDriftHeld(t, true, true))
	says(t, 0, isHeld+`application.krake.dev/web neither held nor suspended\n`, "resume", "web")
	if problem := isColour(t, "green")(); problem != "" {
		t.Error(problem)
	}
	says(t, 0, `configmap/settings resumed\n`, "resume", "web", "configmap/settings")
	kit.Eventually(t, isColour(t, "blue"))
	kit.Eventually(t, isDriftHeld(t, false, true))
}

const isHeld = `Warning: application.krake.dev/web: configmap/settings is held by an annotation of its own until ` + someTime +
	`: kubectl krake resume web configmap/settings\n`

func suspends(t *testing.T) {
	says(t, 0, `application.krake.dev/web suspended\n`, "suspend", "web")
	says(t, 0, `Warning: metadata.annotations\[krake.dev/hold-until\]: mode suspend reverts nothing, so a hold has no effect.*\n`+
		"application.krake.dev/web held until "+someTime+`\n`, "hold", "web")
	paint(t, "red")
	says(t, 0, `application.krake.dev/web resumed\n`, "resume", "web")
	kit.Eventually(t, isColour(t, "blue"))
}

// A user who may see Applications, and not write them, reads the API server's own
// refusal.
func refuses(t *testing.T) {
	server.Kubectl(t, "create", "role", "anna", "--verb=get,list", "--resource=configmaps", "--namespace", "demo")
	server.Kubectl(t, "create", "rolebinding", "anna", "--role=anna", "--user=anna", "--namespace", "demo")
	kit.Eventually(t, func() string {
		if answer, _ := try(t, server.Cluster.Kubectl(), "auth", "can-i", "get", "configmaps", "--namespace", "demo", "--as=anna"); answer != "yes\n" {
			return "anna may not see ConfigMaps: " + answer
		}
		return ""
	})
	says(t, 2, `error: application.krake.dev/web: configmaps "web" is forbidden: User "anna" cannot patch resource "configmaps" in API group "" in the namespace "demo": kubectl auth can-i --list .*\n`,
		"--as=anna", "suspend", "web")
	says(t, 2, `error: list the Applications of all namespaces: configmaps is forbidden: .*\n`, "--as=anna", "uninstall", "--check")
}

func uninstalls(t *testing.T) {
	text, status := krake(t, "uninstall", "--check")
	if status != 1 || !strings.Contains(text, "1 Application is held by agents") {
		t.Fatalf("exit status %d, says\n%s", status, text)
	}
	t.Log(text)
	steps := regexp.MustCompile(`(?m)^ *\d+\. kubectl (delete configmap .*)$`).FindAllStringSubmatch(text, -1)
	if len(steps) != 1 {
		t.Fatalf("the order is\n%s", text)
	}
	for _, step := range steps {
		server.Kubectl(t, strings.Fields(step[1])...)
	}
	if text, status = krake(t, "uninstall", "--check"); status != 0 || !strings.HasPrefix(text, "Nothing is in the way") {
		t.Fatalf("exit status %d, says\n%s", status, text)
	}
	if left := server.Kubectl(t, "get", "configmap", "settings", "--namespace", "demo", "-o", "name", "--ignore-not-found"); left != "" {
		t.Errorf("there still is %s", left)
	}
}
