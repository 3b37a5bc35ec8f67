package policies

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/test/kit"
)

// controller is the ServiceAccount of the Habitat controller.
var controller = identity{name: "krake-habitat", namespace: "krake-system"}

var habitats = schema.GroupVersionResource{Group: "habitat.sh", Version: "v1beta1", Resource: "habitats"}

// installHabitat applies the manifests for Habitats, in addition to the shared
// installation. No program of it runs. The controller's account has all rights on the
// kinds that its policies confine.
func installHabitat(ctx context.Context) error {
	folder := filepath.Join(server.Dir(), "manifests", "test-habitat")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	text := "replicas: [{name: krake-habitat, count: 0}]\ncomponents:"
	for _, component := range []string{"crd", "roles", "policies", "controller", "cluster"} {
		text += "\n- ../components/habitat/" + component
	}
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		return err
	}
	if said, err := kit.TryKubectl(ctx, server.Cluster, "", "apply", "-k", folder); err != nil || strings.Contains(said, "Warning") {
		return fmt.Errorf("apply what there is for Habitats: %w\n%s", err, said)
	}
	said, err := kit.TryKubectl(ctx, server.Cluster, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: test-habitat}
rules:
- apiGroups: ["", apps, apiextensions.k8s.io]
  resources: [configmaps, deployments, statefulsets, pods, customresourcedefinitions]
  verbs: [get, list, create, update, patch, delete, deletecollection]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: test-habitat}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: test-habitat}
subjects: [{kind: ServiceAccount, namespace: krake-system, name: krake-habitat}]
`, "create", "-f", "-")
	if err != nil {
		return fmt.Errorf("grant the rights: %w\n%s", err, said)
	}
	return nil
}

// habitatProbes returns the probes of the policies and the definition for Habitats.
func habitatProbes() map[string]func(context.Context) (bool, error) {
	return map[string]func(context.Context) (bool, error){
		"krake-habitat is in force":           refusedBy("krake-habitat", controller.does(creation(plain("default", "probe")))),
		"krake-habitat-workloads is in force": refusedBy("krake-habitat-workloads", controller.does(createStatefulSet)),
		"Habitats are served, and krake-habitat-deprecated is known": func(ctx context.Context) (bool, error) {
			warned, err := dryCreation(ctx, administrator, "default", habitatOf(v1beta1Habitat, ""))
			if apierrors.IsNotFound(err) {
				return false, nil // not served yet
			}
			return strings.Contains(warned, "krake-habitat-deprecated"), err
		},
	}
}

// Each row of the tables changes one of these Habitats.
const (
	v1beta2Habitat = `
apiVersion: habitat.sh/v1beta1
kind: Habitat
metadata: {name: shop}
customVersion: v1beta2
spec:
  v1beta2:
    image: registry.example.org/origin/shop:1.0
    service: {name: shop, topology: standalone}`

	v1beta1Habitat = `
apiVersion: habitat.sh/v1beta1
kind: Habitat
metadata: {name: shop}
spec:
  image: registry.example.org/origin/shop:1.0
  service: {name: shop, topology: standalone}`
)

// habitatOf returns a Habitat after a change, a merge patch in YAML.
func habitatOf(text, change string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: merge(mustRead(text), mustRead(change))}
}

// mustRead parses YAML, with numbers as the API server's JSON has them.
func mustRead(text string) map[string]any {
	var fields map[string]any
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = json.Unmarshal(raw, &fields)
	}
	if err != nil {
		panic(fmt.Sprintf("%v: %s", err, text))
	}
	return fields
}

func merge(into, change map[string]any) map[string]any {
	for key, value := range change {
		fields, isObject := value.(map[string]any)
		of, hasObject := into[key].(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case isObject && hasObject:
			into[key] = merge(of, fields)
		default:
			into[key] = value
		}
	}
	return into
}

// habitatsAs returns the client for the Habitats of a namespace, as an identity.
func habitatsAs(ctx context.Context, who identity, namespace string) (dynamic.ResourceInterface, *warnings, error) {
	config, err := who.config(ctx)
	if err != nil {
		return nil, nil, err
	}
	said := &warnings{}
	config.WarningHandler = said
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	return client.Resource(habitats).Namespace(namespace), said, nil
}

func mustHabitatsAs(t *testing.T, who identity, namespace string) dynamic.ResourceInterface {
	t.Helper()
	resource, _, err := habitatsAs(t.Context(), who, namespace)
	kit.Must(t, err)
	return resource
}

// warnings collects the warnings in the answers to one client.
type warnings struct{ texts []string }

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) { w.texts = append(w.texts, text) }

// dryCreation returns the server's answer to the creation of a Habitat, with unknown
// fields refused.
func dryCreation(ctx context.Context, who identity, namespace string, of *unstructured.Unstructured) (warned string, err error) {
	resource, said, err := habitatsAs(ctx, who, namespace)
	if err != nil {
		return "", err
	}
	_, err = resource.Create(ctx, of, metav1.CreateOptions{DryRun: dry, FieldValidation: metav1.FieldValidationStrict})
	return strings.Join(said.texts, "\n"), err
}

// faulty returns the fields that an answer names.
func faulty(err error) []string {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		if cause.Field != "<nil>" {
			fields = append(fields, cause.Field)
		}
	}
	return fields
}

// createStatefulSet creates the StatefulSet probe, as a dry run.
func createStatefulSet(ctx context.Context, client kubernetes.Interface) error {
	return kit.ErrorOf(client.AppsV1().StatefulSets("default").Create(ctx, statefulSet("probe"), metav1.CreateOptions{DryRun: dry}))
}

func statefulSet(name string) *appsv1.StatefulSet {
	labels := map[string]string{"habitat-name": name}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.StatefulSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}},
		}},
	}
}
