package policies

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/test/kit"
)

// controller is the ServiceAccount of the Habitat controller.
var controller = identity{name: "krake-habitat", namespace: "krake-system"}

var habitats = schema.GroupVersionResource{Group: "habitat.sh", Version: "v1beta1", Resource: "habitats"}

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

// dryCreation returns the server's answer to the creation of a Habitat, with unknown
// fields refused.
func dryCreation(ctx context.Context, who identity, namespace string, of *unstructured.Unstructured) (warned string, err error) {
	as, err := who.client(ctx)
	if err != nil {
		return "", err
	}
	as.said.take()
	_, err = as.dynamic.Resource(habitats).Namespace(namespace).Create(ctx, of, metav1.CreateOptions{DryRun: dry, FieldValidation: metav1.FieldValidationStrict})
	return as.said.take(), err
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
func createStatefulSet(ctx context.Context, as clients) error {
	probe := habitatOf(fmt.Sprintf(workload, "StatefulSet", "probe"), "")
	return kit.ErrorOf(as.dynamic.Resource(kit.StatefulSets).Namespace("default").Create(ctx, probe, metav1.CreateOptions{DryRun: dry}))
}
