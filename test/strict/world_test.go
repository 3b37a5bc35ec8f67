package strict

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/manifests"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
)

// world is a cluster with an installation in strict mode.
type world struct {
	*kit.Plane

	installation *installation.Installation
}

// newWorld starts a cluster and installs into it, with the roles of the overlay and
// these flags of webhook and agent. It is always a cluster of this machine: there are
// two of them, and the tests read their audit logs.
func newWorld(ctx context.Context, overlay string, flags ...string) (*world, error) {
	plane, err := kit.StartPlane(ctx, cluster.Options{})
	if err != nil {
		return nil, err
	}
	w := &world{Plane: plane}
	flags = append(flags, "--require-service-account")
	options := installation.Options{WebhookArgs: flags, AgentArgs: flags}
	if w.installation, err = installation.InstallWith(ctx, plane.Cluster, options, os.Stderr); err != nil {
		return nil, errors.Join(err, plane.Stop())
	}
	return w, w.applyRoles(ctx, overlay)
}

// applyRoles replaces the installation's RBAC with the overlay's.
func (w *world) applyRoles(ctx context.Context, overlay string) error {
	folder := filepath.Join(w.Dir(), "overlay")
	if err := os.CopyFS(folder, fs.FS(manifests.Files)); err != nil {
		return fmt.Errorf("write manifests: %w", err)
	}
	text, err := exec.CommandContext(ctx, w.Cluster.Kubectl(), "kustomize", filepath.Join(folder, "overlays", overlay)).Output()
	if err != nil {
		return fmt.Errorf("build overlay %s: %w", overlay, err)
	}
	var documents []string
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
			return fmt.Errorf("read overlay %s: %w", overlay, err)
		}
		if slices.Contains([]string{"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}, kind.Kind) {
			documents = append(documents, document)
		}
	}
	if text, err := kit.TryKubectl(ctx, w.Cluster, strings.Join(documents, "\n---\n"), "apply", "-f", "-"); err != nil {
		return fmt.Errorf("apply the roles of overlay %s: %w\n%s", overlay, err, text)
	}
	return nil
}

// try runs kubectl with an input and returns its stdout and stderr.
func (w *world) try(input string, arguments ...string) (string, error) {
	return kit.TryKubectl(context.Background(), w.Cluster, input, arguments...)
}

// namespace creates a namespace without any account of Applications. Applications that
// remain in it at the end are given up.
func (w *world) namespace(t *testing.T) string {
	t.Helper()
	name := kit.UniqueName("strict")
	w.CreateNamespace(t, name)
	t.Cleanup(func() {
		if w.Get(t, kit.Namespaces, "", name) == nil {
			return
		}
		ctx, apps, ours := context.WithoutCancel(t.Context()), w.CoreV1().ConfigMaps(name), metav1.ListOptions{LabelSelector: application.ClusterLabel}
		kit.Must(t, apps.DeleteCollection(ctx, metav1.DeleteOptions{}, ours))
		left, err := apps.List(ctx, ours)
		kit.Must(t, err)
		for _, app := range left.Items {
			err := w.App(name, app.Name).TryPatch(ctx, fmt.Sprintf(`{"metadata": {"annotations": {%q: "true"}}}`, application.ForceDeleteAnnotation))
			if !apierrors.IsNotFound(err) {
				kit.Must(t, err)
			}
		}
		kit.Must(t, w.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{}))
	})
	return name
}

// account creates a service account, bound in its namespace to a ClusterRole if one is
// named.
func (w *world) account(t *testing.T, namespace, name, role string) {
	t.Helper()
	w.Make(t, namespace, fmt.Sprintf("{apiVersion: v1, kind: ServiceAccount, metadata: {name: %s}}", name))
	if role != "" {
		w.bind(t, namespace, "ClusterRole/"+role, "ServiceAccount/"+name)
	}
}

// bind binds a role in a namespace, such as ClusterRole/edit, to a subject, such as User/low. A ServiceAccount is one of the namespace.
func (w *world) bind(t *testing.T, namespace, role, subject string) {
	t.Helper()
	roleKind, roleName, _ := strings.Cut(role, "/")
	kind, name, _ := strings.Cut(subject, "/")
	in := "namespace: " + namespace
	if kind == "User" {
		in = "apiGroup: rbac.authorization.k8s.io"
	}
	w.Make(t, namespace, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %[2]s-%[4]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: %[1]s, name: %[2]s}
subjects: [{kind: %[3]s, name: %[4]s, %[5]s}]
`, roleKind, roleName, kind, name, in))
}

// grant creates or changes a Role with one rule, and binds it as bind does.
func (w *world) grant(t *testing.T, namespace, name, subject, rule string) {
	t.Helper()
	w.Make(t, namespace, fmt.Sprintf("{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: %s}, rules: [{apiGroups: [''], %s}]}", name, rule))
	w.bind(t, namespace, "Role/"+name, subject)
}

// apply creates or changes an Application as the administrator. Its name begins with
// "app", which distinguishes it from other ConfigMaps in the audit log.
func (w *world) apply(t *testing.T, namespace, name, manifest string, options ...kit.Option) {
	t.Helper()
	app := kit.JSON(t, kit.Application(namespace, name, manifest, options...))
	_, err := w.CoreV1().ConfigMaps(namespace).Patch(t.Context(), name, types.ApplyPatchType, app, metav1.PatchOptions{FieldManager: "kubectl", Force: new(true)})
	kit.Must(t, err)
}

// gone deletes Applications, and waits until they are gone.
func (w *world) gone(t *testing.T, namespace string, names ...string) {
	t.Helper()
	for _, name := range names {
		w.App(namespace, name).Delete(t)
	}
	for _, name := range names {
		w.App(namespace, name).MustGo(t)
	}
}

// remove deletes an Application, and waits until it is gone. If it stays, the test fails with its status and with what holds namespaces
// and definitions.
func (w *world) remove(t *testing.T, namespace, name string) {
	t.Helper()
	for _, id := range w.App(namespace, name).Read(t).Inventory {
		if !id.IsDefinition() {
			continue
		}
		// The API server makes the storage of a kind with its first request. If that is the deletion of the definition, its finalizer
		// sometimes hangs for minutes after the error "storage is (re)initializing" (crd_finalizer.go of 1.36.3).
		kit.Eventually(t, func() string {
			if text, err := w.try("", "get", id.Name, "--all-namespaces", "--output", "name"); err != nil {
				return text
			}
			return ""
		})
	}
	text, err := w.try("", "--namespace", namespace, "delete", "configmap", name, "--timeout", kit.Timeout.String())
	if err == nil {
		return
	}
	conditions := `{range .items[?(@.metadata.deletionTimestamp)]}{.kind} {.metadata.name} {.metadata.finalizers} {.status.conditions}{"\n"}{end}`
	held, _ := w.try("", "get", "namespaces,customresourcedefinitions", "--output", "jsonpath="+conditions)
	services, _ := w.try("", "get", "apiservices", "--output", `jsonpath={range .items[*]}{.metadata.name} {.status.conditions[*].message}{"\n"}{end}`)
	t.Fatalf("%v\n%s\n%s\nbeing deleted:\n%s\nAPIServices:\n%s", err, text, kit.YAML(t, w.App(namespace, name).Stored(t)), held, services)
}

// reconciled waits until an Application is as it should be.
func (w *world) reconciled(t *testing.T, namespace, name string) {
	t.Helper()
	kit.Eventually(t, func() string {
		if c := w.App(namespace, name).Condition(t, application.ReconciledCondition); c.Status != metav1.ConditionTrue {
			return fmt.Sprintf("Application %s: %+v", name, c)
		}
		return ""
	})
}

// says waits until the condition Reconciled has a reason, and its message all of these
// texts.
func (w *world) says(t *testing.T, namespace, name, reason string, texts ...string) {
	t.Helper()
	kit.Eventually(t, func() string {
		c := w.App(namespace, name).Condition(t, application.ReconciledCondition)
		if c.Status != metav1.ConditionFalse || c.Reason != reason {
			return fmt.Sprintf("Application %s: %+v", name, c)
		}
		for _, text := range texts {
			if !strings.Contains(c.Message, text) {
				return fmt.Sprintf("Application %s does not say %q: %s", name, text, c.Message)
			}
		}
		return ""
	})
}
