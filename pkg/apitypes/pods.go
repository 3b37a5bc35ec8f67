package apitypes

import "github.com/krake-observer/krake-observer/pkg/manifest"

// PodPath returns the fields that lead to the Pod, or to the Pod template, of a
// resource that runs Pods: none for a Pod. The version does not matter, the group
// does: kinds of the same name in other groups have other fields.
func PodPath(id manifest.ID) (path []string, runsPods bool) {
	switch id.GroupVersionKind().Group + " " + id.Kind {
	case " Pod":
		return nil, true
	case " ReplicationController", "apps Deployment", "apps StatefulSet", "apps DaemonSet", "apps ReplicaSet", "batch Job":
		return []string{"spec", "template"}, true
	case "batch CronJob":
		return []string{"spec", "jobTemplate", "spec", "template"}, true
	}
	return nil, false
}
