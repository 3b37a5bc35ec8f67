package discovery

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"
)

// Lister lists and describes what a target serves. A discovery client implements it.
type Lister interface {
	ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error)
	discovery.OpenAPIV3SchemaInterface
}

// catalogue is all that a target serves, read at one time.
type catalogue struct {
	mapper meta.RESTMapper
	lists  []*metav1.APIResourceList
	// failed are the groups that the target serves and could not describe.
	failed map[schema.GroupVersion]error
}

// read asks a target for all that it serves.
func read(target Lister) (*catalogue, error) {
	groups, lists, err := target.ServerGroupsAndResources()
	partly, failed := errors.AsType[*discovery.ErrGroupDiscoveryFailed](err)
	if err != nil && !failed {
		return nil, fmt.Errorf("ask what is served: %w", err)
	}
	core, others := false, false
	for _, group := range groups {
		core, others = core || group.Name == "", others || group.Name != ""
	}
	if !core || !others { // without the right to discovery, the list is empty
		return nil, errors.New("the API server lists no kinds: may the agent read /api and /apis?")
	}
	read := &catalogue{mapper: restmapper.NewDiscoveryRESTMapper(resourcesOf(groups, lists)), lists: lists}
	if failed {
		read.failed = partly.Groups
	}
	return read, nil
}

// resourcesOf groups the resources by group and version.
func resourcesOf(groups []*metav1.APIGroup, lists []*metav1.APIResourceList) []*restmapper.APIGroupResources {
	byVersion := make(map[string][]metav1.APIResource, len(lists))
	for _, list := range lists {
		byVersion[list.GroupVersion] = list.APIResources
	}
	resources := make([]*restmapper.APIGroupResources, 0, len(groups))
	for _, group := range groups {
		of := &restmapper.APIGroupResources{Group: *group, VersionedResources: map[string][]metav1.APIResource{}}
		for _, version := range group.Versions {
			if found, ok := byVersion[version.GroupVersion]; ok {
				of.VersionedResources[version.Version] = found
			}
		}
		resources = append(resources, of)
	}
	return resources
}

// find returns where a kind is served, in any version if it names none. For a kind that
// the target does not serve, meta.IsNoMatchError holds, and not for one whose group did
// not answer: a deleted Application gives up the objects of a kind that is gone.
func (c *catalogue) find(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if !meta.IsNoMatchError(err) {
		return mapping, err
	}
	for version, unsure := range c.failed {
		if version.Group == gvk.Group && (version.Version == gvk.Version || gvk.Version == "") {
			return nil, fmt.Errorf("ask what is served of %s: %w", version, unsure)
		}
	}
	if versions := c.versionsOf(gvk.Kind); len(versions) > 0 {
		return nil, fmt.Errorf("%w: the cluster serves %s in %s", err, gvk.Kind, strings.Join(versions, ", "))
	}
	return nil, err
}

// maxVersions bounds the versions that an error names.
const maxVersions = 4

// versionsOf returns groups and versions in which the target serves a kind of this name.
func (c *catalogue) versionsOf(kind string) []string {
	var versions []string
	for _, list := range c.lists {
		isKind := func(resource metav1.APIResource) bool {
			return resource.Kind == kind && resource.Group == "" && !strings.Contains(resource.Name, "/")
		}
		if slices.ContainsFunc(list.APIResources, isKind) {
			versions = append(versions, list.GroupVersion)
		}
	}
	slices.Sort(versions)
	return versions[:min(len(versions), maxVersions)]
}
