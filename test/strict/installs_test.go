package strict

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/kit"
)

// Public installations are reconciled with two commands, one for the account and one for the Application, without a refused
// request. What the agent writes it writes as the account. Of Secrets, an administrator first grants the agent the rights
// that the command prints. After the deletion nothing is left.
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
			namespace, app := "of-"+name, "app-"+name
			w.grantAgent(t, namespace, app, file)
			begin, started := w.Mark(t), time.Now()
			w.grantAccount(t, namespace)
			t.Log(w.plugin(t, "create", app, "--namespace", namespace, "--filename", file))
			w.reconciled(t, namespace, app)
			took := time.Since(started)
			made := work(t, begin, "")
			checkAccount(t, made, namespace)
			for _, r := range refused(made) {
				t.Errorf("refused: %s: %d %s", r.URI, r.Status.Code, r.Status.Message)
			}
			t.Logf("%d writes in %s", len(made), took)
			inventory := w.App(namespace, app).Read(t).Inventory
			w.App(namespace, app).Annotate(t, "deletion-policy", string(application.Delete)) // also of definitions
			w.remove(t, namespace, app)
			for _, id := range inventory {
				if w.exists(id) {
					t.Errorf("after the deletion there is %s", id)
				}
			}
		})
	}
}

// grantAgent grants the agent the rights that it lacks for a manifest.
func (w *world) grantAgent(t *testing.T, namespace, app, file string) {
	t.Helper()
	rights := w.plugin(t, "create", app, "--namespace", namespace, "--filename", file, "--print-missing-rights")
	if rights == "" {
		return
	}
	t.Logf("%s", rights)
	w.Apply(t, rights)
	t.Cleanup(func() { w.Kubectl(t, "delete", "clusterrole", "krake-agent-"+app, "--ignore-not-found") })
}

// grantAccount creates the account of a namespace, which may do everything.
func (w *world) grantAccount(t *testing.T, namespace string) {
	t.Helper()
	t.Log(w.plugin(t, "account", "--namespace", namespace, "--grant", "cluster-admin"))
	t.Cleanup(func() { w.revoke(t, namespace) })
}

// revoke deletes the binding of the account of a namespace that may do everything, if there is one.
func (w *world) revoke(t *testing.T, namespace string) {
	t.Helper()
	err := w.RbacV1().ClusterRoleBindings().Delete(context.WithoutCancel(t.Context()), namespace+"-krake-deployer-cluster-admin", metav1.DeleteOptions{})
	if !apierrors.IsNotFound(err) {
		kit.Must(t, err)
	}
}

// exists reports whether an object exists. One whose kind is not served does not.
func (w *world) exists(id manifest.ID) bool {
	text, err := w.try("", "get", id.Kind+"."+version(id.APIVersion), id.Name, "--namespace", id.Namespace, "--ignore-not-found", "--output=name")
	return err == nil && text != ""
}

// refused selects the requests that were refused.
func refused(made []kit.Request) []kit.Request {
	return kit.Select(made, func(r kit.Request) bool { return r.Status.Code >= http.StatusBadRequest })
}

// version returns a version and its group as kubectl takes them.
func version(apiVersion string) string {
	group, version, ok := strings.Cut(apiVersion, "/")
	if !ok {
		return apiVersion + "."
	}
	return version + "." + group
}

// plugin runs kubectl krake as the administrator and returns its stdout.
func (w *world) plugin(t *testing.T, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(w.Dir(), "installation", "kubectl-krake"), append(arguments, "--kubeconfig", w.Kubeconfig())...)
	var says strings.Builder
	command.Stderr = &says
	text, err := command.Output()
	if err != nil {
		t.Fatalf("kubectl krake %s: %v\n%s", strings.Join(arguments, " "), err, says.String())
	}
	return string(text)
}
