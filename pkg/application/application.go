package application

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// Application is the content of a ConfigMap: the user's spec and the status.
type Application struct {
	types.NamespacedName

	UID types.UID
	// Version is the resourceVersion of the ConfigMap that was read.
	Version string
	// Cluster is the target cluster, Holder the one whose agent reads this. They differ
	// for an Application that was moved away from the holder.
	Cluster, Holder string
	// OtherHolders are the other clusters that have objects, or will have them, sorted.
	OtherHolders []string
	// Elsewhere are the other holders that recorded objects, with the progress of the shutdown there.
	Elsewhere map[string]ShutdownRecord
	// ServiceAccount is the identity to act as on the target, empty for the agent's own.
	ServiceAccount string
	Deleted        bool
	// NotAdmitted is why the Application must not be carried out, nil if its signature is valid.
	NotAdmitted error
	Settings    Settings
	Spec        Spec
	// Annotations are those of the ConfigMap, which never change.
	Annotations map[string]string

	// LastApplied and LastObserved are published for people. LastObserved also has the values that may be removed from
	// objects when they leave the spec.
	LastApplied, LastObserved Published
	// Mangled is the mangled observer schema if only the agent can compute it.
	Mangled []map[string]any
	// Learned are the observed values that the spec does not have, see schema.Schema.Learned.
	Learned []map[string]any
	Status  Status
	// Inventory is what the agent of the holder holds, or is about to create. Adopted are the
	// objects in it that existed before.
	Inventory, Adopted []manifest.ID
	// Hooks is what the agent of the holder recorded of the hooks.
	Hooks HookRecord
	// DocumentsDigest is that of the documents that the holder's agent wrote last. DocumentsAreOurs reports that
	// it matches the stored documents: no other agent has written the learned and observed values.
	DocumentsDigest  string
	DocumentsAreOurs bool
	// Damaged has the keys of unreadable documents with the reasons, except for [Published] ones.
	// An unreadable inventory, and unreadable learned values, are not overwritten.
	Damaged map[string]error
	// Finalized reports that the finalizer of the holder's agent is set.
	Finalized bool
}

// IsCurrent reports whether the reader's cluster is the target cluster.
func (a *Application) IsCurrent() bool { return a.Holder == a.Cluster }

// IsObserved reports whether the status is about the present spec on the target cluster.
func (a *Application) IsObserved() bool {
	return a.Status.ClusterName() == a.Cluster && a.Status.ObservedSpec == a.Spec.Digest()
}

// IsReady reports whether the agent of the target cluster reports all objects of the present spec as existing and healthy. A former
// cluster then deletes its own; IsReady only decides when, because the user who moved the Application has authorized the deletion.
func (a *Application) IsReady() bool {
	return a.IsObserved() && meta.IsStatusConditionTrue(a.Status.Conditions, ReadyCondition)
}

// IsAwaited reports whether the agent of the target cluster is ready for the Application and waits
// for its shutdown elsewhere. Like IsReady, it only decides when.
func (a *Application) IsAwaited() bool { return a.Status.Awaiting == a.Cluster }
