package strict

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/manifests"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
)

const agentUser = "system:serviceaccount:krake-agents:local"

var (
	configMaps   = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	services     = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	namespaces   = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	deployments  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	roles        = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}
	roleBindings = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}
	clusterRoles = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
	definitions  = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// world is a cluster with an installation in strict mode.
type world struct {
	cluster      *cluster.Cluster
	installation *installation.Installation
	client       dynamic.Interface // the administrator's
}

// newWorld starts a cluster and installs into it, with the roles of the overlay
// and these flags of webhook and agent. It is always one of this machine's: there
// are two of them, and their audit logs are what judges.
func newWorld(ctx context.Context, overlay string, flags ...string) (*world, error) {
	c, err := cluster.Start(ctx, cluster.Options{})
	if err != nil {
		return nil, err
	}
	flags = append(flags, "--require-service-account")
	installed, err := installation.InstallWith(ctx, c, installation.Options{WebhookArgs: flags, AgentArgs: flags}, os.Stderr)
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(c.RESTConfig())
	if err != nil {
		return nil, err
	}
	w := &world{cluster: c, installation: installed, client: client}
	return w, w.applyRoles(ctx, overlay)
}

// applyRoles applies what the overlay has of RBAC, in the place of that of the
// installation.
func (w *world) applyRoles(ctx context.Context, overlay string) error {
	folder := filepath.Join(w.cluster.Dir(), "overlay")
	if err := os.CopyFS(folder, fs.FS(manifests.Files)); err != nil {
		return fmt.Errorf("write manifests: %w", err)
	}
	text, err := exec.CommandContext(ctx, w.cluster.Kubectl(), "kustomize", filepath.Join(folder, "overlays", overlay)).Output()
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
	apply := exec.CommandContext(ctx, w.cluster.Kubectl(), "--kubeconfig", w.cluster.Kubeconfig(), "apply", "-f", "-")
	apply.Stdin = strings.NewReader(strings.Join(documents, "\n---\n"))
	if text, err := apply.CombinedOutput(); err != nil {
		return fmt.Errorf("apply the roles of overlay %s: %w\n%s", overlay, err, text)
	}
	return nil
}

// kubectl runs kubectl as the administrator and gives what it printed.
func (w *world) kubectl(t *testing.T, arguments ...string) string {
	t.Helper()
	text, err := w.try("", arguments...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(arguments, " "), err, text)
	}
	return text
}

// try runs kubectl with an input and gives what it printed to both outputs.
func (w *world) try(input string, arguments ...string) (string, error) {
	command := exec.Command(w.cluster.Kubectl(), append([]string{"--kubeconfig", w.cluster.Kubeconfig()}, arguments...)...)
	command.Stdin = strings.NewReader(input)
	text, err := command.CombinedOutput()
	return string(text), err
}

// namespace makes a namespace without any account of Applications. Those that are
// left in it at the end are given up.
func (w *world) namespace(t *testing.T) string {
	t.Helper()
	if err := w.installation.Look(); err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("strict-%06d", rand.IntN(1e6))
	w.kubectl(t, "create", "namespace", name)
	t.Cleanup(func() {
		if w.get(t, namespaces, "", name) == nil {
			return
		}
		w.kubectl(t, "--namespace", name, "delete", "configmaps", "--selector", "krake.dev/cluster", "--wait=false")
		w.kubectl(t, "--namespace", name, "annotate", "configmaps", "--selector", "krake.dev/cluster", "krake.dev/force-delete=true", "--overwrite")
		w.kubectl(t, "delete", "namespace", name, "--wait=false")
	})
	return name
}

// account makes a service account, bound in its namespace to a ClusterRole if one
// is named.
func (w *world) account(t *testing.T, namespace, name, role string) {
	t.Helper()
	w.kubectl(t, "--namespace", namespace, "create", "serviceaccount", name)
	if role != "" {
		w.kubectl(t, "--namespace", namespace, "create", "rolebinding", name, "--clusterrole", role, "--serviceaccount", namespace+":"+name)
	}
}

// applicationOf is an Application as a user writes it. Their names begin with "app",
// by which the audit log tells them from other ConfigMaps.
func applicationOf(t *testing.T, namespace, name, manifest string, annotations ...string) string {
	t.Helper()
	all := map[string]string{application.FormatAnnotation: application.Format}
	for _, annotation := range annotations {
		key, value, _ := strings.Cut(annotation, "=")
		all[application.Prefix+key] = value
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": name, "namespace": namespace, "annotations": all},
		"data":     map[string]any{application.ManifestKey: manifest},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// apply creates or changes an Application as the administrator.
func (w *world) apply(t *testing.T, namespace, name, manifest string, annotations ...string) {
	t.Helper()
	if text, err := w.try(applicationOf(t, namespace, name, manifest, annotations...), "apply", "-f", "-"); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

// get reads an object, or gives nil if there is none.
func (w *world) get(t *testing.T, resource schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	object, err := w.client.Resource(resource).Namespace(namespace).Get(context.Background(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// change changes an object as somebody else would.
func (w *world) change(t *testing.T, resource schema.GroupVersionResource, namespace, name, patch string) {
	t.Helper()
	w.kubectl(t, "--namespace", namespace, "patch", resource.Resource+"."+resource.Version+"."+resource.Group, name, "--type=merge", "--patch", patch)
}

// stringAt reads a text of an object by the names of its fields.
func stringAt(object *unstructured.Unstructured, path ...string) string {
	if object == nil {
		return ""
	}
	text, _, err := unstructured.NestedString(object.Object, path...)
	if err != nil {
		return err.Error()
	}
	return text
}

// condition gives a condition of an Application, or an empty one.
func (w *world) condition(t *testing.T, kind, namespace, name string) metav1.Condition {
	t.Helper()
	var status application.Status
	text := stringAt(w.get(t, configMaps, namespace, name), "data", application.StatusKey)
	if text == "" {
		return metav1.Condition{}
	}
	if err := json.Unmarshal([]byte(text), &status); err != nil {
		t.Fatalf("status of %s: %v", name, err)
	}
	at := slices.IndexFunc(status.Conditions, func(c metav1.Condition) bool { return c.Type == kind })
	if at < 0 {
		return metav1.Condition{}
	}
	return status.Conditions[at]
}

// reconciled waits until an Application is as it should be.
func (w *world) reconciled(t *testing.T, namespace, name string) {
	t.Helper()
	eventually(t, func() string {
		if c := w.condition(t, application.ReconciledCondition, namespace, name); c.Status != metav1.ConditionTrue {
			return fmt.Sprintf("Application %s: %+v", name, c)
		}
		return ""
	})
}

// says waits until the condition Reconciled has a reason, and its message all of
// these texts.
func (w *world) says(t *testing.T, namespace, name, reason string, texts ...string) {
	t.Helper()
	eventually(t, func() string {
		c := w.condition(t, application.ReconciledCondition, namespace, name)
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

// gone waits until an object is no more.
func (w *world) gone(t *testing.T, resource schema.GroupVersionResource, namespace, name string) {
	t.Helper()
	eventually(t, func() string {
		if object := w.get(t, resource, namespace, name); object != nil {
			return fmt.Sprintf("%s %s is still there: %v", resource.Resource, name, object.Object["data"])
		}
		return ""
	})
}

// eventually waits until check finds nothing to complain about.
func eventually(t *testing.T, check func() (complaint string)) {
	t.Helper()
	deadline := time.Now().Add(timeout)
	for {
		complaint := check()
		if complaint == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s: %s", timeout, complaint)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
