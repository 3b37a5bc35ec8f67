package habitat

import (
	"context"
	"errors"
	"fmt"
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
	// partOfLabel, of this value, is on what we ship.
	partOfLabel, partOf = "app.kubernetes.io/part-of", "krake-observer"

	// establishTimeout and establishPeriod are those of the Habitat operator. A
	// definition that the API server has taken in is served after a second or two.
	establishTimeout = 10 * time.Second
	establishPeriod  = 500 * time.Millisecond
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// establish registers the definition of Habitats, unless somebody else does, and
// waits until the API server serves them.
func establish(ctx context.Context, options Options) error {
	if !options.AssumeRegistered {
		if err := register(ctx, options.Config, options.Logger); err != nil {
			return fmt.Errorf("register the CustomResourceDefinition of Habitats (or have somebody do it, and set --assume-crd-registered): %w", err)
		}
	}
	served, err := discovery.NewDiscoveryClientForConfig(options.Config)
	if err != nil {
		return err
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, establishPeriod, establishTimeout, true, func(context.Context) (bool, error) {
		last = isServed(served)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the API server to serve Habitats: %w", errors.Join(last, err))
	}
	return nil
}

// isServed gives what is missing of the resources that the controllers need.
func isServed(served discovery.ServerResourcesInterface) error {
	list, err := served.ServerResourcesForGroupVersion(habitat.APIVersion)
	if err != nil {
		return fmt.Errorf("%s: %w: apply the CustomResourceDefinition", habitat.APIVersion, err)
	}
	for _, wanted := range []string{habitat.Plural, habitat.Plural + "/status"} {
		found := false
		for _, resource := range list.APIResources {
			found = found || resource.Name == wanted
		}
		if !found {
			return fmt.Errorf("%s has no %s: replace the CustomResourceDefinition by the one that is shipped with this program", habitat.APIVersion, wanted)
		}
	}
	return nil
}

// register creates the definition, and brings one of ours that is of another
// version of this program to this one. That of somebody else it leaves alone.
func register(ctx context.Context, config *rest.Config, logger logr.Logger) error {
	shipped, err := definition()
	if err != nil {
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
		if apierrors.IsAlreadyExists(err) {
			return nil // another replica was faster
		}
		return err
	case err != nil:
		return err
	case live.GetLabels()[partOfLabel] != partOf:
		logger.Info("the CustomResourceDefinition is somebody else's, and is left as it is", "definition", live.GetName())
		return nil
	}
	return update(ctx, resource, shipped, live)
}

// update changes what differs from what is shipped, and leaves alone what others
// have added, as the agent does with objects.
func update(ctx context.Context, resource dynamic.ResourceInterface, shipped, live *unstructured.Unstructured) error {
	fields, err := observed.Default(shipped.Object)
	if err != nil {
		return err
	}
	if len(fields.Compare(shipped.Object, live.Object)) == 0 {
		return nil
	}
	wanted := &unstructured.Unstructured{Object: fields.Overlay(shipped.Object, live.Object)}
	if _, err := resource.Update(ctx, wanted, metav1.UpdateOptions{FieldManager: Name}); !apierrors.IsConflict(err) {
		return err
	}
	return nil // another replica was faster
}

// definition reads the shipped CustomResourceDefinition.
func definition() (*unstructured.Unstructured, error) {
	text, err := manifests.Files.ReadFile(definitionFile)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{}
	return object, yaml.Unmarshal(text, object)
}
