package create

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// found is a live object, and where the API server serves its kind.
type found struct {
	*unstructured.Unstructured

	mapping *meta.RESTMapping
}

// name is the object in the form of kubectl.
func (f found) name() string { return env.ResourceName(f.id()) }

func (f found) id() manifest.ID {
	return manifest.ID{APIVersion: f.GetAPIVersion(), Kind: f.GetKind(), Name: f.GetName()}
}

// exclusion returns why an object is not imported, empty if it is. Another program keeps the object
// in its state, or is about to delete it.
func (f found) exclusion() string {
	owner, marked := application.OwnerOf(f.Object)
	_, isApplication := f.GetAnnotations()[application.FormatAnnotation]
	switch {
	case f.GetDeletionTimestamp() != nil:
		return "it is being deleted"
	case marked:
		return fmt.Sprintf("it belongs to the Application %s", owner)
	case metav1.GetControllerOf(f.Unstructured) != nil:
		return "a controller has created it"
	case isApplication && f.GetKind() == "ConfigMap":
		return "it is an Application"
	case f.GetKind() == "ConfigMap" && f.GetName() == "kube-root-ca.crt":
		return errOfControlPlane.Error()
	}
	return ""
}

// notImported are the kinds of which users write no object, and Secrets, whose values do not belong
// in an Application.
var notImported = []schema.GroupKind{
	{Kind: "Secret"}, {Kind: "Event"}, {Group: "events.k8s.io", Kind: "Event"}, {Group: "coordination.k8s.io", Kind: "Lease"},
	{Kind: "Endpoints"}, {Group: "discovery.k8s.io", Kind: "EndpointSlice"},
}

// named reads the objects that arguments of the form KIND/NAME name.
func named(ctx context.Context, o env.Objects, names []string, namespace string) ([]found, error) {
	all := make([]found, 0, len(names))
	for _, named := range names {
		kind, name, err := env.KindName(named)
		if err != nil {
			return nil, err
		}
		mapping, err := o.MappingOf(kind)
		if err != nil {
			return nil, err
		}
		if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
			return nil, fmt.Errorf("%s: objects of this kind have no namespace, and belong to no Application: leave it out", named)
		}
		if slices.Contains(notImported, mapping.GroupVersionKind.GroupKind()) {
			return nil, fmt.Errorf("%s: objects of this kind are not imported: leave it out", named)
		}
		live, err := o.Resource(mapping.Resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", named, err)
		}
		all = append(all, found{live, mapping})
	}
	return all, nil
}

// selected lists the objects of a namespace that a selector selects, of all kinds that users write.
// It returns the kinds that the user may not list.
func selected(ctx context.Context, o env.Objects, selector, namespace string) (all []found, unread []string, err error) {
	kinds, err := o.Discovery.ServerPreferredNamespacedResources()
	if err != nil {
		return nil, nil, fmt.Errorf("find the kinds of objects, or name objects as KIND/NAME: %w", err)
	}
	kinds = discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "create", "patch", "delete"}}, kinds)
	for _, list := range kinds {
		for _, resource := range list.APIResources {
			mapping, err := mappingOfResource(o, list.GroupVersion, resource)
			if err != nil {
				return nil, nil, err
			}
			if slices.Contains(notImported, mapping.GroupVersionKind.GroupKind()) {
				continue
			}
			listed, err := o.Resource(mapping.Resource).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
			switch {
			case apierrors.IsForbidden(err):
				unread = append(unread, mapping.Resource.GroupResource().String())
				continue
			case err != nil:
				return nil, nil, fmt.Errorf("list %s: %w", mapping.Resource.GroupResource(), err)
			}
			for i := range listed.Items {
				all = append(all, found{&listed.Items[i], mapping})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b found) int {
		return cmp.Or(strings.Compare(a.GetKind(), b.GetKind()), strings.Compare(a.GetName(), b.GetName()))
	})
	return all, unread, nil
}

func mappingOfResource(o env.Objects, groupVersion string, resource metav1.APIResource) (*meta.RESTMapping, error) {
	version, err := schema.ParseGroupVersion(groupVersion)
	if err != nil {
		return nil, fmt.Errorf("find the kind %s: %w", resource.Kind, err)
	}
	return o.Kinds.RESTMapping(version.WithKind(resource.Kind).GroupKind(), version.Version)
}
