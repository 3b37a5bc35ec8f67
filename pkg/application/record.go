package application

import (
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// roomInAll is the size that the API server allows a ConfigMap.
const roomInAll = 1 << 20

// document is the content for a key, and whether it is wanted.
type document struct {
	key    string
	value  any
	wanted bool
}

// Record writes the parts of the Application that belong to the agent of the holder, and nothing
// else. An agent of a former cluster writes its inventory, its finalizer and its label.
//
// If there is no room for all, Record omits parts and sets the condition StatusTruncated. It omits first
// the observed fields, then the history, then most details of single objects. If that is not
// enough, desired and learned values stay unchanged. The inventory is always written.
func (a *Application) Record(cm *corev1.ConfigMap) error {
	if !a.IsCurrent() {
		return a.recordFormer(cm)
	}
	status := a.Status
	status.Conditions = slices.DeleteFunc(slices.Clone(status.Conditions), func(c metav1.Condition) bool { return c.Type == StatusTruncatedCondition })
	documents := []document{
		{LastObservedKey, a.LastObserved, a.LastObserved.decode != nil || len(a.LastObserved.objects) > 0},
		{LearnedKey, a.Learned, len(a.Learned) > 0},
		{LastAppliedKey, a.LastApplied, a.LastApplied.decode != nil || a.LastApplied.objects != nil},
	}
	if a.Spec.Fetched != "" {
		documents = append(documents, document{TranslatedKey, json.RawMessage(a.Spec.Fetched), true})
		if a.Mangled != nil {
			documents = append(documents, document{MangledSchemaKey, a.Mangled, true})
		}
	}
	stored := cm.DeepCopy()
	for i, shed := range []func(){
		func() {}, // usually everything has room
		func() { documents[0].wanted = false },
		func() { status.Drifts, status.Services = nil, nil },
		func() { status.Objects = briefly(status.Objects) },
		func() { documents = documents[:1] },
	} {
		shed()
		if i == 1 { // from here on, something is left out
			status.Conditions = append(status.Conditions, tooLarge(status.Conditions))
		}
		if err := a.record(cm, stored, documents, status); err != nil || sizeOf(cm) <= roomInAll {
			return err
		}
	}
	return nil
}

// recordFormer writes the inventory of a former cluster. Once that is empty, the Application no
// longer depends on the cluster.
func (a *Application) recordFormer(cm *corev1.ConfigMap) error {
	cm.Data, cm.BinaryData = maps.Clone(cm.Data), maps.Clone(cm.BinaryData)
	if err := a.recordInventory(cm, a.DocumentsDigest); err != nil {
		return err
	}
	setFinalizer(cm, a.Holder, a.Finalized)
	if !a.Finalized {
		delete(cm.Labels, HolderLabel(a.Holder))
	}
	return nil
}

// record writes these documents and the status. The others stay unchanged.
func (a *Application) record(cm, stored *corev1.ConfigMap, documents []document, status Status) error {
	cm.Data, cm.BinaryData = maps.Clone(stored.Data), maps.Clone(stored.BinaryData)
	for _, d := range append(slices.Clone(documents), document{StatusKey, status, status.State != ""}) {
		if a.Damaged[d.key] != nil && d.key == LearnedKey {
			continue // because its content may be needed
		}
		if published, ok := d.value.(Published); ok && d.wanted {
			if published.decode != nil {
				continue // unchanged
			}
			d.value = published.objects
		}
		if err := encode(cm, d.key, d.value, d.wanted); err != nil {
			return err
		}
	}
	if a.Damaged[InventoryKey(a.Holder)] == nil { // or its content may be needed
		if err := a.recordInventory(cm, digestOfDocuments(cm)); err != nil {
			return err
		}
	}
	setFinalizer(cm, a.Holder, a.Finalized)
	if a.Deleted && !a.Finalized {
		delete(cm.Labels, HolderLabel(a.Holder))
	}
	if status.State != "" {
		metav1.SetMetaDataLabel(&cm.ObjectMeta, StateLabel, string(status.State))
	}
	return nil
}

// tooLarge returns the condition of an incomplete status. Its time is that of another condition,
// because the package has no clock.
func tooLarge(others []metav1.Condition) metav1.Condition {
	condition := metav1.Condition{
		Type: StatusTruncatedCondition, Status: metav1.ConditionTrue, Reason: "SizeLimitExceeded",
		Message: "the ConfigMap has no room for the whole status: split the Application, or keep other data elsewhere",
	}
	if len(others) > 0 {
		condition.LastTransitionTime = others[0].LastTransitionTime
	}
	return condition
}

// briefly reduces the status of single objects to what the loop itself needs: that one has a
// problem, its hold, and that it has ended.
func briefly(objects []ObjectStatus) []ObjectStatus {
	var brief []ObjectStatus
	for _, object := range objects {
		if object.Reason != "" || object.Hold != nil || object.Ended != nil {
			brief = append(brief, ObjectStatus{ID: object.ID, Reason: object.Reason, Hold: object.Hold, Ended: object.Ended})
		}
	}
	return brief
}

// sizeOf returns the size that the API server counts against its limit.
func sizeOf(cm *corev1.ConfigMap) int {
	size := 0
	for _, value := range cm.Data {
		size += len(value)
	}
	for _, value := range cm.BinaryData {
		size += len(value)
	}
	return size
}

// Stored records that an Application is stored in this ConfigMap.
func (a *Application) Stored(cm *corev1.ConfigMap) {
	a.Version = cm.ResourceVersion
	if !a.IsCurrent() {
		return
	}
	for key, document := range map[string]*Published{LastAppliedKey: &a.LastApplied, LastObservedKey: &a.LastObserved} {
		if now := stored(cm, key); now.decode != nil { // a document without room stays known
			*document = now
		}
	}
}
