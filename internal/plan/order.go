package plan

import (
	"cmp"
	"slices"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// kindRanks is the order of creation, which is Helm's where it has one: what others refer to comes first, then what limits
// them, then their identities and rights, values, Services and workloads. Other kinds follow, and last what the API server asks about
// other objects: a webhook, an API or a policy that is not ready would refuse them. Deletion has the opposite order.
var kindRanks = map[string]int{
	"Namespace": 0,

	"CustomResourceDefinition": 1, "PriorityClass": 1, "RuntimeClass": 1, "StorageClass": 1, "CSIDriver": 1, "IngressClass": 1,

	"ResourceQuota": 2, "LimitRange": 2, "NetworkPolicy": 2,

	"ServiceAccount": 3, "Role": 3, "RoleBinding": 3, "ClusterRole": 3, "ClusterRoleBinding": 3,

	"ConfigMap": 4, "Secret": 4, "PersistentVolume": 4, "PersistentVolumeClaim": 4,

	"Service": 5, // before the Pods, which get its address in their environment

	"StatefulSet": podRank, "Deployment": podRank, "DaemonSet": podRank, "ReplicaSet": podRank, "Job": podRank, "CronJob": podRank, "Pod": podRank,

	"APIService":                       lastRank,
	"MutatingWebhookConfiguration":     lastRank,
	"ValidatingWebhookConfiguration":   lastRank,
	"MutatingAdmissionPolicy":          lastRank,
	"MutatingAdmissionPolicyBinding":   lastRank,
	"ValidatingAdmissionPolicy":        lastRank,
	"ValidatingAdmissionPolicyBinding": lastRank,
}

// The ranks of workloads, of kinds that kindRanks does not have, and of what others must not wait for.
const (
	podRank   = 6
	otherRank = 7
	lastRank  = 8
)

// CompareKinds orders two kinds by the creation of their objects.
func CompareKinds(a, b string) int { return cmp.Compare(rank(a), rank(b)) }

func rank(kind string) int {
	if known, ok := kindRanks[kind]; ok {
		return known
	}
	return otherRank
}

// RunsPods reports whether objects of a kind run Pods, and whether the kind is known.
func RunsPods(kind string) (runs, known bool) {
	of, known := kindRanks[kind]
	return of == podRank, known
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
	return app.Deleted && app.Settings.DeletionPolicy == application.Orphan ||
		(Contains(app.Adopted, id) || id.IsDefinition()) && !app.Settings.DeletesAll
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
