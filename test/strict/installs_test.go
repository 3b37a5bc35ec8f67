package strict

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// Public installations, from nothing to reconciled with two commands: one for the account, and one for the Application.
func TestInstallationsFromNothing(t *testing.T) {
	w := wide
	folder := os.Getenv("KRAKE_INSTALLS")
	if folder == "" {
		t.Skip("KRAKE_INSTALLS names no folder with manifests of public installations")
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	kit.Must(t, err)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			namespace := "of-" + name
			begin, started := w.Mark(t), time.Now()
			t.Log(w.plugin(t, "account", "--namespace", namespace, "--grant", "cluster-admin"))
			t.Log(w.plugin(t, "create", name, "--namespace", namespace, "--filename", file))
			deadline := time.Now().Add(40 * time.Second)
			for {
				c := w.App(namespace, name).Condition(t, application.ReconciledCondition)
				if c.Status == "True" {
					t.Logf("reconciled after %v", time.Since(started))
					break
				}
				if time.Now().After(deadline) {
					t.Errorf("%+v", c)
					for _, o := range w.App(namespace, name).Read(t).Status.Objects {
						if o.Message != "" {
							t.Logf("%s %s: %s: %s", o.Kind, o.Name, o.Reason, o.Message)
						}
					}
					break
				}
				time.Sleep(300 * time.Millisecond)
			}
			t.Log(w.plugin(t, "history", name, "--namespace", namespace))
			made := work(t, begin, "")
			checkAccount(t, made, namespace)
			refused := 0
			for _, r := range made {
				if r.Status.Code >= 400 {
					refused++
					t.Logf("refused: %s %d %s", r.URI, r.Status.Code, r.Status.Message)
				}
			}
			t.Logf("%d writes, %d refused", len(made), refused)
			w.Kubectl(t, "--namespace", namespace, "delete", "configmap", "--selector", "krake.dev/cluster", "--timeout", "60s")
		})
	}
}

func (w *world) plugin(t *testing.T, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(w.Dir(), "installation", "kubectl-krake"), append(arguments, "--kubeconfig", w.Kubeconfig())...)
	text, err := command.CombinedOutput()
	if err != nil {
		t.Errorf("kubectl krake %s: %v", strings.Join(arguments, " "), err)
	}
	return string(text)
}
