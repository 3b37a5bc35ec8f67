package gitops

import (
	"os"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	"github.com/fluxcd/pkg/ssa"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/test/kit"
)

// The names of Flux's kustomize-controller in what it applies.
const (
	fluxManager = "kustomize-controller"
	fluxGroup   = "kustomize.toolkit.fluxcd.io"
)

// celCheck are health checks of Flux.
type celCheck struct{ of *cel.StatusEvaluator }

// celInFile is the check in manifests/gitops.
func celInFile(t testing.TB) celCheck {
	t.Helper()
	text, err := os.ReadFile("../../manifests/gitops/flux.yaml")
	kit.Must(t, err)
	var patch struct {
		Spec struct{ HealthCheckExprs []kustomize.CustomHealthCheck }
	}
	kit.Must(t, yaml.UnmarshalStrict(text, &patch))
	if len(patch.Spec.HealthCheckExprs) != 1 {
		t.Fatalf("want one check, got %v", patch.Spec.HealthCheckExprs)
	}
	check := patch.Spec.HealthCheckExprs[0]
	if check.APIVersion != "v1" || check.Kind != "ConfigMap" {
		t.Fatalf("want a check of ConfigMaps, got one of %s %s", check.APIVersion, check.Kind)
	}
	evaluator, err := cel.NewStatusEvaluator(&check.HealthCheckExpressions)
	kit.Must(t, err)
	return celCheck{evaluator}
}

// health returns what Flux makes of an object.
func (c celCheck) health(t testing.TB, object *unstructured.Unstructured) status.Status {
	t.Helper()
	result, err := c.of.Evaluate(t.Context(), object)
	kit.Must(t, err)
	return result.Status
}

// flux is the engine of kustomize-controller for a Kustomization called apps.
type flux struct {
	*ssa.ResourceManager

	client client.Client
}

func newFlux(t *testing.T) flux {
	t.Helper()
	c, err := client.New(hub.RESTConfig(), client.Options{})
	kit.Must(t, err)
	return flux{ssa.NewResourceManager(c, nil, ssa.Owner{Field: fluxManager, Group: fluxGroup}), c}
}

// sync applies an object with the options of kustomize-controller, and returns what it did.
func (f flux) sync(t *testing.T, object *unstructured.Unstructured) ssa.Action {
	t.Helper()
	object = object.DeepCopy()
	f.SetOwnerLabels([]*unstructured.Unstructured{object}, "apps", "flux-system")
	options := ssa.DefaultApplyOptions()
	options.Cleanup = ssa.ApplyCleanupOptions{
		Annotations: []string{corev1.LastAppliedConfigAnnotation},
		FieldManagers: []ssa.FieldManager{
			{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationApply},
			{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationUpdate},
			{Name: "before-first-apply", OperationType: metav1.ManagedFieldsOperationUpdate},
			{Name: fluxManager, OperationType: metav1.ManagedFieldsOperationUpdate},
		},
		Exclusions: map[string]string{fluxGroup + "/ssa": "Merge"},
	}
	entry, err := f.Apply(t.Context(), object, options)
	kit.Must(t, err)
	return entry.Action
}

// mustFindNoDrift fails if Flux finds a difference between an object and the live one.
func (f flux) mustFindNoDrift(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	object = object.DeepCopy()
	f.SetOwnerLabels([]*unstructured.Unstructured{object}, "apps", "flux-system")
	entry, live, wanted, err := f.Diff(t.Context(), object, ssa.DefaultDiffOptions())
	kit.Must(t, err)
	if entry.Action != ssa.UnchangedAction {
		t.Errorf("Flux finds drift:\nwant %v\nlive %v", wanted, live)
	}
}
