package application

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// Application is what a ConfigMap says: the user's spec and the status.
type Application struct {
	types.NamespacedName

	UID types.UID
	// Version is the resourceVersion of the ConfigMap that was read.
	Version string
	// Cluster is the target cluster, Holder the one whose agent reads this: the
	// same, but for an Application that was moved away from the holder.
	Cluster, Holder string
	// OtherHolders are the other clusters that hold objects, or are to, sorted.
	OtherHolders []string
	// Elsewhere are those of them that have taken note of objects, with how far the
	// shutdown there has got.
	Elsewhere map[string]ShutdownRecord
	// ServiceAccount is the identity to act as on the target; empty: the agent's own.
	ServiceAccount string
	Deleted        bool
	Wishes         Wishes
	Spec           Spec

	// LastApplied and LastObserved are published for people to read; nothing is
	// decided by them.
	LastApplied, LastObserved Published
	// Mangled is the mangled observer schema, for the agent to write if only it can
	// compute it.
	Mangled []map[string]any
	// Learned are the observed values that the spec does not say, as
	// schema.Schema.Learned gives them.
	Learned []map[string]any
	Status  Status
	// Inventory is what the agent of the holder holds, or is about to create.
	Inventory []manifest.ID
	// Adopted are those of the inventory that existed before, and were taken over.
	Adopted []manifest.ID
	// Hooks is what the agent of the holder keeps of the hooks.
	Hooks HookRecord
	// Vouch is what the holder's agent has said of the documents that it wrote last,
	// and Vouched tells that these are they: no other agent has written since what was
	// learned and observed.
	Vouch   string
	Vouched bool
	// Damaged are the keys of documents that cannot be read, with the reason; those that
	// are published tell by themselves. What is
	// held and what was learned is not written then either: it may be needed.
	Damaged map[string]error
	// Finalized tells that the agent of the holder has its finalizer on.
	Finalized bool
}

// IsCurrent tells if the Application is, or is to be, where its reader is.
func (a *Application) IsCurrent() bool { return a.Holder == a.Cluster }

// HandedOver tells if the agent of the target cluster says that everything is
// there, and healthy: what a former cluster has is not needed any more. It is a
// time to act, and no authority to: that is the user's, who has moved the
// Application.
func (a *Application) HandedOver() bool {
	return a.Status.ClusterName() == a.Cluster && a.Status.ObservedSpec == a.Spec.Digest() &&
		meta.IsStatusConditionTrue(a.Status.Conditions, ReadyCondition)
}

// IsAwaited tells if the agent of the target cluster says that it could carry the
// Application out, and waits for it to shut down first: like HandedOver, a time to act.
func (a *Application) IsAwaited() bool { return a.Status.Awaiting == a.Cluster }

// Spec is the user's text, as it was written, and the hooks that add to it.
type Spec struct {
	Manifest       string
	ObserverSchema string
	// Tosca is a template or its URL, CSAR an archive, which is no text, or its URL.
	Tosca, CSAR string
	Hooks       Hooks
	// Fetched is what was behind the URL, translated, as canonical JSON; empty if it
	// was not fetched. It is no part of what the user says.
	Fetched string
}

// Digest changes when what the user says does. A ConfigMap has no generation.
func (s Spec) Digest() string {
	texts := []string{s.Manifest, s.ObserverSchema}
	if s.Tosca != "" || s.CSAR != "" {
		texts = append(texts, s.Tosca, s.CSAR)
	}
	for _, hook := range s.Hooks.Enabled() {
		texts = append(texts, string(hook))
	}
	if s.Hooks.InitContainers {
		texts = append(texts, "init containers")
	}
	hash := sha256.New()
	for _, text := range texts {
		sum := sha256.Sum256([]byte(text))
		hash.Write(sum[:])
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil))
}

// Source gives the key and the text of what says the resources: the manifest if
// there is one, else the template, else the archive.
func (s Spec) Source() (key, text string) {
	switch {
	case s.Manifest == "" && s.Tosca != "":
		return ToscaKey, s.Tosca
	case s.Manifest == "" && s.CSAR != "":
		return CSARKey, s.CSAR
	}
	return ManifestKey, s.Manifest
}

// IsApplication tells if a ConfigMap says that it is an Application, of
// whatever format version.
func IsApplication(cm *corev1.ConfigMap) bool {
	_, ok := cm.Annotations[FormatAnnotation]
	return ok
}

// ClusterOf gives the target cluster that the ConfigMap names.
func ClusterOf(cm *corev1.ConfigMap) string {
	if cluster := cm.Annotations[ClusterAnnotation]; cluster != "" {
		return cluster
	}
	return LocalCluster
}

// IsAdmitted tells if the webhook has admitted the Application to the cluster
// that it names.
func IsAdmitted(cm *corev1.ConfigMap) bool {
	_, published := cm.Labels[HolderLabel(ClusterOf(cm))]
	return published
}

// SpecOf gives the user's text.
func SpecOf(cm *corev1.ConfigMap) Spec {
	return Spec{
		Manifest: cm.Data[ManifestKey], ObserverSchema: cm.Data[ObserverSchemaKey],
		Tosca: cm.Data[ToscaKey], CSAR: cm.Data[CSARKey] + string(cm.BinaryData[CSARKey]),
		Hooks: HooksOf(cm),
	}
}

// SameFor tells if nothing differs between two versions of a ConfigMap that the
// agent of the cluster would have to act on. Of what webhook and agents write,
// that is who else holds objects, and for the agent of a former cluster whether
// they are there where they belong, or awaited.
func SameFor(a, b *corev1.ConfigMap, cluster string) bool {
	return a.UID == b.UID &&
		a.DeletionTimestamp.Equal(b.DeletionTimestamp) &&
		maps.Equal(a.Annotations, b.Annotations) &&
		SpecOf(a) == SpecOf(b) &&
		slices.Equal(othersOf(a, cluster), othersOf(b, cluster)) &&
		maps.EqualFunc(elsewhere(a, cluster), elsewhere(b, cluster), sameShutdown) &&
		(ClusterOf(b) == cluster || timeToLeave(a, cluster) == timeToLeave(b, cluster))
}

func othersOf(cm *corev1.ConfigMap, cluster string) []string {
	var others []string
	for _, holder := range HoldersOf(cm) {
		if holder != cluster {
			others = append(others, holder)
		}
	}
	return others
}

func sameShutdown(a, b ShutdownRecord) bool { return a.State == b.State && a.Message == b.Message }

// timeToLeave tells what the agent of a former cluster waits for.
func timeToLeave(cm *corev1.ConfigMap, cluster string) (told struct{ handedOver, awaited bool }) {
	if app, err := ReadFor(cm, cluster); err == nil {
		told.handedOver, told.awaited = app.HandedOver(), app.IsAwaited()
	}
	return told
}

// GivenUp gives the clusters whose objects the user gives up: their agents are
// never to come back. Of an Application that is being deleted it may be all of
// them; of one that goes on, it cannot be the one where it is.
func GivenUp(cm *corev1.ConfigMap, deleting bool) []string {
	value := cm.Annotations[ForceDeleteAnnotation]
	if value == "true" {
		if deleting {
			return HoldersOf(cm)
		}
		return nil
	}
	var clusters []string
	for name := range strings.SplitSeq(value, ",") {
		if name = strings.TrimSpace(name); name != "" && (deleting || name != ClusterOf(cm)) {
			clusters = append(clusters, name)
		}
	}
	return clusters
}

// setFinalizer adds or removes the finalizer of a cluster.
func setFinalizer(cm *corev1.ConfigMap, cluster string, on bool) {
	name := Finalizer(cluster)
	has := slices.Contains(cm.Finalizers, name)
	switch {
	case on && !has:
		cm.Finalizers = append(cm.Finalizers, name)
	case !on && has:
		cm.Finalizers = slices.DeleteFunc(slices.Clone(cm.Finalizers), func(f string) bool { return f == name })
	}
}
