package application

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

const (
	// gzipAbove is the size of a document, in bytes, from which on it is stored
	// compressed: a ConfigMap holds 1 MiB in all.
	gzipAbove = 64 << 10
	// documentLimit bounds what a compressed document may expand to, and
	// elementLimit of how many fields and elements it may be: an empty object is
	// two bytes of text, and many times that in memory.
	documentLimit = 4 << 20
	elementLimit  = 400_000
	// roomInAll is what a ConfigMap holds.
	roomInAll = 1 << 20
)

// ErrFormat is the error of a format version that this program does not know.
// Whoever meets it writes nothing and deletes nothing.
var ErrFormat = errors.New("unknown format version")

// Read is [ReadFor] the target cluster.
func Read(cm *corev1.ConfigMap) (*Application, error) { return ReadFor(cm, ClusterOf(cm)) }

// ReadFor reads the Application from its ConfigMap, as the agent of the cluster
// sees it, which holds objects of it or did so. The error is ErrFormat; a document
// that does not parse is among those that are damaged.
func ReadFor(cm *corev1.ConfigMap, holder string) (*Application, error) {
	if format := cm.Annotations[FormatAnnotation]; format != Format {
		return nil, fmt.Errorf("%w %q in annotation %s: this program knows %s", ErrFormat, format, FormatAnnotation, Format)
	}
	wishes, _ := WishesOf(cm) // what cannot be read was refused at admission
	app := &Application{
		Wishes:         wishes,
		NamespacedName: types.NamespacedName{Namespace: cm.Namespace, Name: cm.Name},
		UID:            cm.UID,
		Version:        cm.ResourceVersion,
		Cluster:        ClusterOf(cm),
		Holder:         holder,
		OtherHolders:   othersOf(cm, holder),
		ServiceAccount: cm.Annotations[ServiceAccountAnnotation],
		Deleted:        !cm.DeletionTimestamp.IsZero(),
		Spec:           SpecOf(cm),
		Finalized:      slices.Contains(cm.Finalizers, Finalizer(holder)),
		Elsewhere:      elsewhere(cm, holder),
		LastApplied:    stored(cm, LastAppliedKey),
		LastObserved:   stored(cm, LastObservedKey),
	}
	var held []heldObject
	for key, document := range map[string]any{
		LearnedKey: &app.Learned, StatusKey: &app.Status, InventoryKey(holder): &held,
	} {
		if err := decode(cm, key, document); err != nil {
			if app.Damaged == nil {
				app.Damaged = map[string]error{}
			}
			app.Damaged[key] = err
		}
	}
	for _, object := range held {
		app.Vouch += object.Vouch
		if object.Hooks != nil {
			app.Hooks = *object.Hooks
		}
		app.Spec.Fetched += app.Spec.fetched(cm, object.Fetched)
		app.Inventory = append(app.Inventory, object.ID)
		if object.Adopted {
			app.Adopted = append(app.Adopted, object.ID)
		}
	}
	app.Vouched = app.Vouch == vouchOf(cm)
	return app, nil
}

// elsewhere gives the other clusters that really hold objects, with how far the
// shutdown there has got.
func elsewhere(cm *corev1.ConfigMap, holder string) map[string]ShutdownRecord {
	var records map[string]ShutdownRecord
	for _, cluster := range othersOf(cm, holder) {
		if !slices.Contains(cm.Finalizers, Finalizer(cluster)) {
			continue
		}
		var held []heldObject
		var record ShutdownRecord
		if err := decode(cm, InventoryKey(cluster), &held); err == nil && len(held) > 0 && held[0].Hooks != nil && held[0].Hooks.Shutdown != nil {
			record = *held[0].Hooks.Shutdown
		}
		if records == nil {
			records = map[string]ShutdownRecord{}
		}
		records[cluster] = record
	}
	return records
}

// heldObject is an object in the inventory.
type heldObject struct {
	manifest.ID

	Adopted bool `json:"adopted,omitempty"`
	// Vouch is that of the holder's agent for the documents that it has written; the
	// first object has it.
	Vouch string `json:"vouch,omitempty"`
	// Fetched is the digest of the URL and of what was found there; the first object
	// has it, and what is kept of the hooks.
	Fetched string      `json:"fetched,omitempty"`
	Hooks   *HookRecord `json:"hooks,omitempty"`
}

func (a *Application) held(vouch string) []heldObject {
	held := make([]heldObject, 0, len(a.Inventory))
	for i, id := range a.Inventory {
		object := heldObject{ID: id, Adopted: slices.Contains(a.Adopted, id)}
		if i == 0 {
			object.Vouch, object.Fetched = vouch, a.Spec.fetchedAs(a.Spec.Fetched)
			if !a.Hooks.isEmpty() {
				object.Hooks = &a.Hooks
			}
		}
		held = append(held, object)
	}
	return held
}

// fetched gives the translation that is stored, if the holder's agent has said that it
// is one of what the spec says now.
func (s Spec) fetched(cm *corev1.ConfigMap, said string) string {
	text, err := read(cm, TranslatedKey)
	if err != nil || said == "" || said != s.fetchedAs(string(text)) {
		return "" // it is fetched once more
	}
	return string(text)
}

// fetchedAs digests a translation together with what it is said to be one of.
func (s Spec) fetchedAs(translation string) string {
	if translation == "" {
		return ""
	}
	key, text := s.Source()
	return DigestOf([]byte(key + " " + DigestOf([]byte(text)) + " " + DigestOf([]byte(translation))))
}

// vouchOf digests what an agent has learned and observed, as it is stored. The
// agent of whatever cluster the Application is on may write these documents, and only
// that of the holder its inventory, which says by this which of them are its own.
func vouchOf(cm *corev1.ConfigMap) string {
	hash, empty := sha256.New(), true
	for _, key := range []string{LearnedKey, LastObservedKey} {
		text := cm.Data[key] + string(cm.BinaryData[key])
		empty = empty && text == ""
		sum := sha256.Sum256([]byte(text))
		hash.Write(sum[:])
	}
	if empty {
		return ""
	}
	return hex.EncodeToString(hash.Sum(nil)[:16])
}

// Record writes the parts of the Application that belong to the agent of the
// holder, and nothing else: of a former one that is what it holds, its finalizer and
// its label. What there is no room for is left out, and a
// condition says so: the observed fields first, then the history, then most of what
// there is to tell of single objects. If that is not enough, what is desired and what was learned stay as they
// are stored. What is held is always written.
func (a *Application) Record(cm *corev1.ConfigMap) error {
	status := a.Status
	status.Conditions = slices.DeleteFunc(slices.Clone(status.Conditions), func(c metav1.Condition) bool { return c.Type == TooLargeCondition })
	if !a.IsCurrent() {
		return a.recordFormer(cm)
	}
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
	written := func() error { return a.record(cm, stored, documents, status) }
	if err := written(); err != nil {
		return err
	}
	for _, shed := range []func(){
		func() { documents[0].wanted = false },
		func() { status.Drifts, status.Services = nil, nil },
		func() { status.Objects = briefly(status.Objects) },
		func() { documents = documents[:1] },
	} {
		if sizeOf(cm) <= roomInAll {
			return nil
		}
		shed()
		status = status.tooLarge()
		if err := written(); err != nil {
			return err
		}
	}
	return nil
}

// recordFormer writes what a former cluster still holds, and when that is nothing
// has the Application go from there.
func (a *Application) recordFormer(cm *corev1.ConfigMap) error {
	cm.Data, cm.BinaryData = maps.Clone(cm.Data), maps.Clone(cm.BinaryData)
	if err := encode(cm, InventoryKey(a.Holder), a.held(a.Vouch), len(a.Inventory) > 0); err != nil {
		return err
	}
	setFinalizer(cm, a.Holder, a.Finalized)
	if !a.Finalized {
		delete(cm.Labels, HolderLabel(a.Holder))
	}
	return nil
}

// briefly leaves of single objects what the loop itself goes by: that something is
// wrong with one, and since when it is held.
func briefly(objects []ObjectStatus) []ObjectStatus {
	var brief []ObjectStatus
	for _, object := range objects {
		if object.Reason != "" || object.Hold != nil {
			brief = append(brief, ObjectStatus{ID: object.ID, Reason: object.Reason, Hold: object.Hold})
		}
	}
	return brief
}

// document is what is stored under a key, if it is wanted.
type document struct {
	key    string
	value  any
	wanted bool
}

// record writes these documents and the status; the others are as they are stored.
func (a *Application) record(cm, stored *corev1.ConfigMap, documents []document, status Status) error {
	cm.Data, cm.BinaryData = maps.Clone(stored.Data), maps.Clone(stored.BinaryData)
	for _, d := range append(slices.Clone(documents), document{StatusKey, status, status.State != ""}) {
		if a.Damaged[d.key] != nil && d.key == LearnedKey {
			continue // what it says may be needed
		}
		if published, ok := d.value.(Published); ok && d.wanted {
			if published.decode != nil {
				continue // as it is stored
			}
			d.value = published.objects
		}
		if err := encode(cm, d.key, d.value, d.wanted); err != nil {
			return err
		}
	}
	if key := InventoryKey(a.Holder); a.Damaged[key] == nil { // or it may be needed
		if err := encode(cm, key, a.held(vouchOf(cm)), len(a.Inventory) > 0); err != nil {
			return err
		}
	}
	setFinalizer(cm, a.Holder, a.Finalized)
	if a.Deleted && !a.Finalized {
		delete(cm.Labels, HolderLabel(a.Holder))
	}
	if status.State != "" {
		setLabel(cm, StateLabel, string(status.State))
	}
	return nil
}

// sizeOf is what the API server counts against its limit.
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

// Documents are those that admission computes.
type Documents struct {
	// Translated is the translation of a template or an archive (step 0), nil where
	// there is a manifest.
	Translated []map[string]any
	// Mangled is the mangled observer schema, Applied the desired state.
	Mangled, Applied []map[string]any
}

// Publish writes what admission computed, and the labels of the target cluster.
func Publish(cm *corev1.ConfigMap, documents Documents) error {
	publishHolder(cm)
	return errors.Join(
		encode(cm, TranslatedKey, documents.Translated, documents.Translated != nil),
		encode(cm, MangledSchemaKey, documents.Mangled, true),
		encode(cm, LastAppliedKey, documents.Applied, true),
	)
}

// PublishUnfetched writes the labels of the target cluster for an Application whose
// resources are behind a URL: all documents are for its agent to write. Those of the
// same URL stay until it does.
func PublishUnfetched(cm, stored *corev1.ConfigMap) {
	publishHolder(cm)
	key, text := SpecOf(cm).Source()
	if formerKey, former := SpecOf(stored).Source(); key == formerKey && text == former {
		return
	}
	for _, key := range []string{TranslatedKey, MangledSchemaKey, LastAppliedKey} {
		delete(cm.Data, key)
		delete(cm.BinaryData, key)
	}
}

func publishHolder(cm *corev1.ConfigMap) {
	setLabel(cm, ClusterLabel, ClusterOf(cm))
	setLabel(cm, HolderLabel(ClusterOf(cm)), "true")
	dropIdleHolders(cm)
}

// dropIdleHolders takes off the labels of clusters where the Application is not to
// be, and never was: nobody else would, if there is no such cluster. The agent of
// one that is about to claim something finds that the Application has changed.
func dropIdleHolders(cm *corev1.ConfigMap) {
	for _, cluster := range othersOf(cm, ClusterOf(cm)) {
		_, held := cm.Data[InventoryKey(cluster)]
		_, heldMuch := cm.BinaryData[InventoryKey(cluster)]
		if !held && !heldMuch && !slices.Contains(cm.Finalizers, Finalizer(cluster)) {
			delete(cm.Labels, HolderLabel(cluster))
		}
	}
}

// LearnedOf reads what was learned on that cluster, see [Application.Learned]:
// nothing, if the status speaks of another one.
func LearnedOf(cm *corev1.ConfigMap, cluster string) ([]map[string]any, error) {
	var learned []map[string]any
	if err := decode(cm, LearnedKey, &learned); err != nil {
		return nil, err
	}
	var status Status
	if err := decode(cm, StatusKey, &status); err != nil {
		status = Status{} // as the agent takes it
	}
	if status.ClusterName() != cluster {
		return nil, nil
	}
	return learned, nil
}

// GiveUp drops what keeps the Application for a cluster: its finalizer, its label
// and what it says that it holds, which is given.
func GiveUp(cm *corev1.ConfigMap, cluster string) []manifest.ID {
	var held []manifest.ID
	if err := decode(cm, InventoryKey(cluster), &held); err != nil {
		held = nil // it is damaged, which is perhaps why it is given up
	}
	delete(cm.Data, InventoryKey(cluster))
	delete(cm.BinaryData, InventoryKey(cluster))
	delete(cm.Labels, HolderLabel(cluster))
	setFinalizer(cm, cluster, false)
	return held
}

// HeldBy reads what the agents of all clusters say that they hold.
func HeldBy(cm *corev1.ConfigMap) ([]manifest.ID, error) {
	var held []manifest.ID
	for _, keys := range []iter.Seq[string]{maps.Keys(cm.Data), maps.Keys(cm.BinaryData)} {
		for key := range keys {
			if !strings.HasPrefix(key, inventoryPrefix) {
				continue
			}
			var ids []manifest.ID
			if err := decode(cm, key, &ids); err != nil {
				return nil, err
			}
			held = append(held, ids...)
		}
	}
	return held, nil
}

func setLabel(cm *corev1.ConfigMap, name, value string) {
	if cm.Labels == nil {
		cm.Labels = map[string]string{}
	}
	cm.Labels[name] = value
}

// encode stores a document as canonical JSON, compressed if it is large. One
// that is not wanted is removed.
func encode(cm *corev1.ConfigMap, key string, document any, wanted bool) error {
	delete(cm.Data, key)
	delete(cm.BinaryData, key)
	if !wanted {
		return nil
	}
	text, err := canonical(document)
	if err != nil {
		return fmt.Errorf("encode %s: %w", key, err)
	}
	if len(text) <= gzipAbove {
		if cm.Data == nil {
			cm.Data = map[string]string{}
		}
		cm.Data[key] = string(text)
		return nil
	}
	compressed, err := compress(text)
	if err != nil {
		return fmt.Errorf("compress %s: %w", key, err)
	}
	if cm.BinaryData == nil {
		cm.BinaryData = map[string][]byte{}
	}
	cm.BinaryData[key] = compressed
	return nil
}

// read gives the text of a document, expanded if it is stored compressed.
func read(cm *corev1.ConfigMap, key string) ([]byte, error) {
	compressed, ok := cm.BinaryData[key]
	if !ok {
		return []byte(cm.Data[key]), nil
	}
	text, err := expand(compressed)
	if err != nil {
		return nil, fmt.Errorf("expand %s: %w", key, err)
	}
	return text, nil
}

func decode(cm *corev1.ConfigMap, key string, document any) error {
	text, err := read(cm, key)
	if err != nil || len(text) == 0 {
		return err
	}
	if bytes.Count(text, []byte(","))+bytes.Count(text, []byte("{"))+bytes.Count(text, []byte("[")) > elementLimit {
		return fmt.Errorf("decode %s: more than %d elements", key, elementLimit)
	}
	if err := utiljson.Unmarshal(text, document); err != nil {
		return fmt.Errorf("decode %s: %w", key, err)
	}
	return nil
}

// canonical is JSON with sorted keys and without the escapes of HTML, so that
// equal documents are equal bytes.
func canonical(document any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(document); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

func compress(text []byte) ([]byte, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func expand(compressed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(r, documentLimit+1))
	if err != nil {
		return nil, err
	}
	if len(text) > documentLimit {
		return nil, fmt.Errorf("larger than %d bytes", documentLimit)
	}
	return text, nil
}
