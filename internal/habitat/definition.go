package habitat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/manifests"
	"github.com/krake-observer/krake-observer/pkg/habitat"
	observed "github.com/krake-observer/krake-observer/pkg/schema"
)

const (
	// definitionFile is the shipped CustomResourceDefinition.
	definitionFile = "components/habitat/crd/habitats.yaml"
	// partOfLabel has this value on all shipped objects.
	partOfLabel, partOf = "app.kubernetes.io/part-of", "krake-observer"

	// establishTimeout and establishPeriod are those of the Habitat operator. The API
	// server serves a new definition after a second or two.
	establishTimeout = 10 * time.Second
	establishPeriod  = 500 * time.Millisecond
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// waitServed waits until the API server serves Habitats.
func waitServed(ctx context.Context, config *rest.Config) error {
	served, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, establishPeriod, establishTimeout, true, func(context.Context) (bool, error) {
		last = checkServed(served)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the API server to serve Habitats: %w", errors.Join(last, err))
	}
	return nil
}

// checkServed returns an error unless the API server serves Habitats with their status.
func checkServed(served discovery.ServerResourcesInterface) error {
	list, err := served.ServerResourcesForGroupVersion(habitat.APIVersion)
	if err != nil {
		return fmt.Errorf("%s: %w: apply the CustomResourceDefinition", habitat.APIVersion, err)
	}
	for _, wanted := range []string{habitat.Plural, habitat.Plural + "/status"} {
		if !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == wanted }) {
			return fmt.Errorf("%s has no %s: replace the CustomResourceDefinition by the one that is shipped with this program", habitat.APIVersion, wanted)
		}
	}
	return nil
}

// register creates the definition, or updates it if it is ours and of another version of
// this program. A definition of another owner stays unchanged.
func register(ctx context.Context, config *rest.Config, logger logr.Logger) error {
	text, err := manifests.Files.ReadFile(definitionFile)
	if err != nil {
		return err
	}
	shipped := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, shipped); err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	resource := client.Resource(definitions)
	live, err := resource.Get(ctx, shipped.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = resource.Create(ctx, shipped, metav1.CreateOptions{FieldManager: Name})
	case err != nil:
	case live.GetLabels()[partOfLabel] != partOf:
		logger.Info("the CustomResourceDefinition belongs to another owner, and stays unchanged", "definition", live.GetName())
	default:
		err = update(ctx, resource, shipped, live)
	}
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		return nil // another replica was faster
	}
	return err
}

// update changes the fields that differ from the shipped ones, and leaves alone those
// that others have added, as the agent does with objects.
func update(ctx context.Context, resource dynamic.ResourceInterface, shipped, live *unstructured.Unstructured) error {
	fields, err := observed.Default(shipped.Object)
	if err != nil || len(fields.Compare(shipped.Object, live.Object)) == 0 {
		return err
	}
	wanted := &unstructured.Unstructured{Object: fields.Overlay(shipped.Object, live.Object)}
	_, err = resource.Update(ctx, wanted, metav1.UpdateOptions{FieldManager: Name})
	return err
}
