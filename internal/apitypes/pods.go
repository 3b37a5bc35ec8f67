package apitypes

import "github.com/krake-observer/krake-observer/pkg/manifest"

// PodPath returns the path of the Pod template of a resource that runs Pods, none for a Pod. It accepts
// any version, but no other group: kinds of the same name there have other fields.
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
