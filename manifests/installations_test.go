package manifests

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/kit"
)

// installed is a set of objects that an administrator applies.
type installed struct {
	name    string
	objects []runtime.Object
}

// built has every installation, once for all tests, which do not change it.
var built = sync.OnceValues(func() ([]installed, error) {
	folder, err := os.MkdirTemp("", "krake-manifests-")
	if err != nil {
		return nil, err
	}
	all, err := buildAll(context.Background(), folder)
	return all, errors.Join(err, os.RemoveAll(folder))
})

// installations returns the base, every overlay and the compositions, as kubectl builds them,
// and an enrolment's objects on the hub.
func installations(t *testing.T) []installed {
	t.Helper()
	all, err := built()
	kit.Must(t, err)
	return all
}

func installation(t *testing.T, name string) installed {
	t.Helper()
	all := installations(t)
	at := slices.IndexFunc(all, func(in installed) bool { return in.name == name })
	if at < 0 {
		t.Fatalf("there is no %s", name)
	}
	return all[at]
}

func buildAll(ctx context.Context, folder string) ([]installed, error) {
	binaries, err := cluster.Build(ctx, io.Discard)
	if err != nil {
		return nil, err
	}
	if err := os.CopyFS(folder, Files); err != nil {
		return nil, err
	}
	overlays, err := fs.Glob(Files, "overlays/*")
	if err != nil {
		return nil, err
	}
	for name, text := range compositions {
		if err := compose(filepath.Join(folder, name), text); err != nil {
			return nil, err
		}
		if !strings.HasPrefix(name, "part/") {
			overlays = append(overlays, name)
		}
	}
	var all []installed
	for _, name := range append(overlays, "base") {
		text, err := exec.CommandContext(ctx, binaries.Kubectl, "kustomize", filepath.Join(folder, name)).CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("build %s: %w\n%s", name, err, text)
		}
		objects, err := decode(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, installed{name, objects})
	}
	enrolment, err := readEnrolment()
	return append(all, installed{"enrolment", enrolment}), err
}

// compositions are combinations of components beside the overlays. A part is applied together
// with others.
var compositions = map[string]string{
	"part/demo":         "namespace: demo\nresources: [../../overlays/hooks/namespace]",
	"made/hooks":        "resources: [../../overlays/hooks, ../../part/demo]",
	"made/strict-hooks": "resources: [../../overlays/hooks, ../../part/demo]\n" + components("strict/webhook", "strict/target", "hooks/strict"),
	"made/strict-all": "resources: [../../overlays/url-sources, ../../part/demo]\n" + components(
		"cluster-scope/webhook", "cluster-scope/target", "hooks/target", "hooks/hub", "hooks/agent", "hooks/strict"),
	"part/spoke":            "resources: [../../overlays/spoke/agent]\n" + components("hooks/spoke"),
	"made/hooks-of-a-spoke": "resources: [../../overlays/spoke/shared, ../../part/spoke]\n" + components("hooks/target"),

	"part/guarded-spoke":      "resources: [../../overlays/spoke/agent]\n" + components("guard/spoke"),
	"made/guarded-spoke":      "resources: [../../overlays/spoke/shared, ../../part/guarded-spoke]",
	"part/habitat":            "namespace: demo\nresources: [../../overlays/habitat/namespace]",
	"made/habitat-namespaced": "resources: [../../overlays/habitat/namespaced, ../../part/habitat]",
	"made/strict-habitat": "resources: [../../overlays/strict]\n" + components(
		"habitat/roles", "habitat/policies", "habitat/controller", "habitat/cluster", "habitat/strict"),
}

func components(some ...string) string {
	return "components: [../../components/" + strings.Join(some, ", ../../components/") + "]"
}

func compose(folder, text string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600)
}

// readEnrolment reads the files that kubectl-krake applies one by one.
func readEnrolment() ([]runtime.Object, error) {
	files, err := fs.Glob(Files, "enrolment/*.yaml")
	if err != nil {
		return nil, err
	}
	var objects []runtime.Object
	for _, file := range files {
		text, err := Files.ReadFile(file)
		if err != nil {
			return nil, err
		}
		of, err := decode(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		objects = append(objects, of...)
	}
	return objects, nil
}

// decode decodes strictly: unknown fields would be dropped silently.
func decode(text []byte) ([]runtime.Object, error) {
	known := runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(known), apiextensionsv1.AddToScheme(known)); err != nil {
		return nil, err
	}
	decoder := serializer.NewCodecFactory(known, serializer.EnableStrict).UniversalDeserializer()
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	var objects []runtime.Object
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
}

// some returns the objects of one type, perhaps none.
func some[T runtime.Object](in installed) []T {
	var found []T
	for _, object := range in.objects {
		if object, ok := object.(T); ok {
			found = append(found, object)
		}
	}
	return found
}

// all returns the objects of one type.
func all[T runtime.Object](t *testing.T, in installed) []T {
	t.Helper()
	found := some[T](in)
	if len(found) == 0 {
		t.Fatalf("%s has no %T: nothing would be checked", in.name, *new(T))
	}
	return found
}

// role is a Role or a ClusterRole.
type role struct {
	metav1.ObjectMeta

	kind  string
	rules []rbacv1.PolicyRule
}

// ref is the role as bindings name it.
func (r role) ref() string { return r.kind + " " + r.Name }

func roles(t *testing.T, in installed) []role {
	t.Helper()
	var found []role
	for _, r := range all[*rbacv1.Role](t, in) {
		found = append(found, role{r.ObjectMeta, "Role", r.Rules})
	}
	for _, r := range all[*rbacv1.ClusterRole](t, in) {
		found = append(found, role{r.ObjectMeta, "ClusterRole", r.Rules})
	}
	return found
}

// bindings returns all bindings. Those of the whole cluster have no namespace.
func bindings(t *testing.T, in installed) []*rbacv1.RoleBinding {
	t.Helper()
	found := all[*rbacv1.RoleBinding](t, in)
	for _, b := range some[*rbacv1.ClusterRoleBinding](in) {
		found = append(found, &rbacv1.RoleBinding{ObjectMeta: b.ObjectMeta, RoleRef: b.RoleRef, Subjects: b.Subjects})
	}
	return found
}

// Where each program runs: a hub without a target of its own has no agent, a target that is no
// hub has no webhook. An enrolment runs nothing on the hub.
func TestWhatRuns(t *testing.T) {
	both, withHabitat := []string{"krake-agent", "krake-webhook"}, []string{"krake-agent", "krake-habitat", "krake-webhook"}
	want := map[string][]string{
		"base": both, "overlays/e2e": both, "overlays/strict": both, "overlays/platform": both, "overlays/default": both,
		"overlays/hub":   {"krake-webhook"},
		"overlays/spoke": {"krake-agent-cluster-name"},
		"overlays/guard": both, "made/guarded-spoke": {"krake-agent-cluster-name"},
		"overlays/hooks": both, "overlays/url-sources": both, "made/hooks": both, "made/strict-hooks": both, "made/strict-all": both,
		"made/hooks-of-a-spoke": {"krake-agent-cluster-name"},
		"overlays/habitat":      withHabitat, "made/habitat-namespaced": withHabitat, "made/strict-habitat": withHabitat,
	}
	for _, in := range installations(t) {
		var names []string
		for _, deployment := range some[*appsv1.Deployment](in) {
			names = append(names, deployment.Name)
		}
		if slices.Sort(names); !slices.Equal(names, want[in.name]) && in.name != "overlays/flowschema" {
			t.Errorf("%s runs %v, want %v", in.name, names, want[in.name])
		}
	}
}

// The default overlay equals the base, except that it also runs images that are loaded into
// the nodes and are in no registry.
func TestDefault(t *testing.T) {
	objects := make([]runtime.Object, 0, 50)
	for _, object := range installation(t, "overlays/default").objects {
		object = object.DeepCopyObject()
		if deployment, ok := object.(*appsv1.Deployment); ok {
			for i := range deployment.Spec.Template.Spec.Containers {
				container := &deployment.Spec.Template.Spec.Containers[i]
				if container.ImagePullPolicy != corev1.PullIfNotPresent {
					t.Errorf("%s: the image is pulled %q", deployment.Name, container.ImagePullPolicy)
				}
				container.ImagePullPolicy = ""
			}
		}
		objects = append(objects, object)
	}
	check.Equal(t, "overlays/default beside base", installation(t, "base").objects, objects)
}
