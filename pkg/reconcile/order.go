package reconcile

import (
	"cmp"
	"slices"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// kindRanks is the order of creation: what others refer to comes first, what
// runs comes late. Kinds that are not named come last; deletion goes backwards.
var kindRanks = map[string]int{
	"Namespace": 0, "CustomResourceDefinition": 1,
	"ServiceAccount": 2, "Role": 2, "RoleBinding": 2, "ClusterRole": 2, "ClusterRoleBinding": 2,
	"ConfigMap": 3, "Secret": 3, "PersistentVolumeClaim": 3,
	"Service":     4, // before the Pods, which get its address in their environment
	"StatefulSet": 5, "Deployment": 5, "DaemonSet": 5, "ReplicaSet": 5, "Job": 5, "CronJob": 5, "Pod": 5,
}

const lastRank = 6

func rank(kind string) int {
	if known, ok := kindRanks[kind]; ok {
		return known
	}
	return lastRank
}

// inOrder sorts identities into the order of creation.
func inOrder(ids []manifest.ID) []manifest.ID {
	sorted := slices.Clone(ids)
	slices.SortStableFunc(sorted, func(a, b manifest.ID) int { return cmp.Compare(rank(a.Kind), rank(b.Kind)) })
	return sorted
}
