package application

import (
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// Documents are the documents that admission computes.
type Documents struct {
	// Translated is the translation of a template or an archive (step 0), nil for a manifest.
	Translated []map[string]any
	// Mangled is the mangled observer schema, Applied the desired state.
	Mangled, Applied []map[string]any
}

// Publish writes the documents that admission computed, and the labels of the target cluster.
func Publish(cm *corev1.ConfigMap, documents Documents) error {
	publishHolder(cm)
	return errors.Join(
		encode(cm, TranslatedKey, documents.Translated, documents.Translated != nil),
		encode(cm, MangledSchemaKey, documents.Mangled, true),
		encode(cm, LastAppliedKey, documents.Applied, true),
	)
}

// PublishUnfetched writes the labels of the target cluster for an Application whose resources are
// behind a URL. Its agent writes the documents; until then, those of the same URL stay.
func PublishUnfetched(cm, stored *corev1.ConfigMap) {
	publishHolder(cm)
	key, text := SpecOf(cm).Source()
	if formerKey, former := SpecOf(stored).Source(); key == formerKey && text == former {
		return
	}
	for _, key := range []string{TranslatedKey, MangledSchemaKey, LastAppliedKey} {
		drop(cm, key)
	}
}

// publishHolder writes the labels of the target cluster. It removes the labels of clusters that
// have no objects of the Application and will have none. No agent does so if the cluster does not
// exist. An agent that is about to claim an object notices that the Application has changed.
func publishHolder(cm *corev1.ConfigMap) {
	current := ClusterOf(cm)
	metav1.SetMetaDataLabel(&cm.ObjectMeta, ClusterLabel, current)
	metav1.SetMetaDataLabel(&cm.ObjectMeta, HolderLabel(current), "true")
	for _, cluster := range othersOf(cm, current) {
		_, held := cm.Data[InventoryKey(cluster)]
		_, heldMuch := cm.BinaryData[InventoryKey(cluster)]
		if !held && !heldMuch && !slices.Contains(cm.Finalizers, Finalizer(cluster)) {
			delete(cm.Labels, HolderLabel(cluster))
		}
	}
}

// GiveUp drops the finalizer, the label and the inventory of a cluster from the Application. It
// returns the inventory.
func GiveUp(cm *corev1.ConfigMap, cluster string) []manifest.ID {
	var recorded inventory
	if err := decode(cm, InventoryKey(cluster), &recorded); err != nil {
		recorded = inventory{} // a damaged inventory may be the reason to give up
	}
	drop(cm, InventoryKey(cluster))
	delete(cm.Labels, HolderLabel(cluster))
	setFinalizer(cm, cluster, false)
	return recorded.ids()
}
