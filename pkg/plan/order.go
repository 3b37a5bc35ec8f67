package plan

import (
	"cmp"
	"slices"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// kindRanks is the order of creation: objects that others refer to come first, workloads late, and
// other kinds last. Deletion has the opposite order.
var kindRanks = map[string]int{
	"Namespace": 0, "CustomResourceDefinition": 1,
	"ServiceAccount": 2, "Role": 2, "RoleBinding": 2, "ClusterRole": 2, "ClusterRoleBinding": 2,
	"ConfigMap": 3, "Secret": 3, "PersistentVolumeClaim": 3,
	"Service":     4, // before the Pods, which get its address in their environment
	"StatefulSet": 5, "Deployment": 5, "DaemonSet": 5, "ReplicaSet": 5, "Job": 5, "CronJob": 5, "Pod": 5,
}

const lastRank = 6

// CompareKinds orders two kinds by the creation of their objects.
func CompareKinds(a, b string) int { return cmp.Compare(rank(a), rank(b)) }

func rank(kind string) int {
	if known, ok := kindRanks[kind]; ok {
		return known
	}
	return lastRank
}

// RunsPods reports whether objects of a kind run Pods, and whether the kind is known.
func RunsPods(kind string) (runs, known bool) {
	of, known := kindRanks[kind]
	return of == kindRanks["Pod"], known
}

// InOrder returns the identities in the order of creation.
func InOrder(ids []manifest.ID) []manifest.ID {
	sorted := slices.Clone(ids)
	slices.SortStableFunc(sorted, func(a, b manifest.ID) int { return CompareKinds(a.Kind, b.Kind) })
	return sorted
}

// IsReleased reports whether an unwanted object stays, without the marks of the Application. That holds for all objects of
// an Application that is deleted with that policy. Unless the user requests their deletion, it also holds for adopted
// objects, and for definitions, which would take all objects of the kind with them.
func IsReleased(app *application.Application, id manifest.ID) bool {
	return app.Deleted && app.Wishes.DeletionPolicy == application.Orphan ||
		(Contains(app.Adopted, id) || id.IsDefinition()) && !app.Wishes.DeletesAll
}

// IsSame reports whether two identities are of one object, in any version of the API. A change of
// apiVersion from v1beta1 to v1 therefore deletes nothing.
func IsSame(a, b manifest.ID) bool {
	return a.Name == b.Name && a.Kind == b.Kind && a.Namespace == b.Namespace &&
		a.GroupVersionKind().Group == b.GroupVersionKind().Group
}

// Contains reports whether one of the identities is the object's, see [IsSame].
func Contains(ids []manifest.ID, id manifest.ID) bool {
	return slices.ContainsFunc(ids, func(other manifest.ID) bool { return IsSame(other, id) })
}
