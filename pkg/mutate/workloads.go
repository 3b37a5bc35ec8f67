package mutate

import (
	"cmp"
	"slices"

	"github.com/krake-observer/krake-observer/internal/apitypes"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// workload is a resource whose containers get the additions of the hooks.
type workload struct {
	index     int
	resource  map[string]any
	namespace string
	// path leads to the spec of its Pods. lists are the lists of their containers.
	path  []string
	lists []string
}

func workloadsOf(hooks application.Hooks, resources []map[string]any) []workload {
	lists := []string{"containers"}
	if hooks.InitContainers {
		lists = append(lists, "initContainers")
	}
	var workloads []workload
	for i, resource := range resources {
		id, _ := manifest.Identify(resource)
		path, runsPods := apitypes.PodPath(id)
		w := workload{index: i, resource: resource, namespace: id.Namespace, path: append(path, "spec"), lists: lists}
		if runsPods && w.isReadable() {
			workloads = append(workloads, w)
		}
	}
	return workloads
}

func (w workload) spec() map[string]any { return below(w.resource, w.path...) }

// isReadable reports whether there is a container, and each field with additions is a list. The API
// server refuses any other workload, which stays unchanged.
func (w workload) isReadable() bool {
	spec := w.spec()
	for _, name := range w.lists {
		items, ok := listOf(spec[name])
		if !ok || slices.ContainsFunc(items, func(item any) bool { return !isReadable(item) }) {
			return false
		}
	}
	_, ok := listOf(spec["volumes"])
	return ok && w.containers() > 0
}

// containers returns the number of containers with additions.
func (w workload) containers() int {
	containers := 0
	for _, name := range w.lists {
		items, _ := listOf(w.spec()[name])
		containers += len(items)
	}
	return containers
}

func isReadable(container any) bool {
	fields, ok := container.(map[string]any)
	_, mounts := listOf(fields["volumeMounts"])
	_, variables := listOf(fields["env"])
	return ok && mounts && variables
}

// namespacesOf returns the namespaces of the workloads, each in the spelling of the first workload.
// The Application's own namespace may be omitted.
func namespacesOf(hooks application.Hooks, workloads []workload) []string {
	var namespaces []string
	for _, w := range workloads {
		if !isAmong(hooks, namespaces, w.namespace) {
			namespaces = append(namespaces, w.namespace)
		}
	}
	return namespaces
}

func isAmong(hooks application.Hooks, namespaces []string, wanted string) bool {
	return slices.ContainsFunc(namespaces, func(namespace string) bool {
		return cmp.Or(namespace, hooks.Namespace) == cmp.Or(wanted, hooks.Namespace)
	})
}
