package application

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// inventory is what the agent of one cluster holds of an Application, with what it recorded beside that.
type inventory struct {
	// Digest is that of the documents that the agent wrote last, see [digestOfDocuments].
	Digest string `json:"digest,omitempty"`
	// Fetched digests the URL of the spec together with its content.
	Fetched string            `json:"fetched,omitempty"`
	Hooks   *HookRecord       `json:"hooks,omitempty"`
	Objects []inventoryObject `json:"objects"`
}

type inventoryObject struct {
	manifest.ID

	// Adopted reports that the object existed before.
	Adopted bool `json:"adopted,omitempty"`
}

// UnmarshalJSON reads the former form as well: a list of objects, whose first one has the other fields.
func (i *inventory) UnmarshalJSON(text []byte) error {
	if !bytes.HasPrefix(text, []byte("[")) {
		type plain inventory
		return json.Unmarshal(text, (*plain)(i))
	}
	var objects []struct {
		inventoryObject

		Vouch   string
		Fetched string
		Hooks   *HookRecord
	}
	if err := json.Unmarshal(text, &objects); err != nil {
		return err
	}
	for n, object := range objects {
		if n == 0 {
			i.Digest, i.Fetched, i.Hooks = object.Vouch, object.Fetched, object.Hooks
		}
		i.Objects = append(i.Objects, object.inventoryObject)
	}
	return nil
}

func (i inventory) ids() []manifest.ID {
	var ids []manifest.ID
	for _, object := range i.Objects {
		ids = append(ids, object.ID)
	}
	return ids
}

// recordInventory writes the inventory of the holder. Without objects there is none.
func (a *Application) recordInventory(cm *corev1.ConfigMap, digest string) error {
	recorded := inventory{Digest: digest, Fetched: a.Spec.fetchedAs(a.Spec.Fetched)}
	if !a.Hooks.isEmpty() {
		recorded.Hooks = &a.Hooks
	}
	for _, id := range a.Inventory {
		recorded.Objects = append(recorded.Objects, inventoryObject{ID: id, Adopted: slices.Contains(a.Adopted, id)})
	}
	return encode(cm, InventoryKey(a.Holder), recorded, len(a.Inventory) > 0)
}

// digestOfDocuments digests the stored documents of learned and observed values. It returns "" if there are
// none. The agent of any cluster that the Application is moved to may write these documents. Only
// the holder's agent writes its inventory, where this digest identifies its own documents.
func digestOfDocuments(cm *corev1.ConfigMap) string {
	learned := cm.Data[LearnedKey] + string(cm.BinaryData[LearnedKey])
	observed := cm.Data[LastObservedKey] + string(cm.BinaryData[LastObservedKey])
	if learned == "" && observed == "" {
		return ""
	}
	return hex.EncodeToString(digestTexts(learned, observed)[:16])
}

// HeldBy reads the inventories of the agents of all clusters.
func HeldBy(cm *corev1.ConfigMap) ([]manifest.ID, error) {
	var held []manifest.ID
	for _, key := range slices.AppendSeq(slices.Collect(maps.Keys(cm.Data)), maps.Keys(cm.BinaryData)) {
		if !strings.HasPrefix(key, inventoryPrefix) {
			continue
		}
		var recorded inventory
		if err := decode(cm, key, &recorded); err != nil {
			return nil, err
		}
		held = append(held, recorded.ids()...)
	}
	return held, nil
}
