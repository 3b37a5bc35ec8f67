package hub

import (
	"bytes"
	"compress/flate"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"weak"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// foldedKey has the texts of a folded ConfigMap. No ConfigMap of the API can have this key.
const foldedKey = ""

// maxLately is how many whole ConfigMaps can be reused until the garbage collector frees
// them.
const maxLately = 512

// Folding stores ConfigMaps with compressed texts. The texts are repetitive, and most are
// never read again while the agent runs.
type Folding struct {
	compressors, expanders sync.Pool
	// lately has weak pointers to whole ConfigMaps by version, because a pass reads the
	// ConfigMap of its Application several times.
	lately *lru.Cache
}

// NewFolding makes a Folding.
func NewFolding() *Folding { return &Folding{lately: lru.New(maxLately)} }

type foldedVersion struct {
	uid     types.UID
	version string
}

func foldedAs(cm *corev1.ConfigMap) foldedVersion { return foldedVersion{cm.UID, cm.ResourceVersion} }

// Fold is the transform of an informer of ConfigMaps. The result has the same metadata,
// without the managed fields.
func (f *Folding) Fold(object any) (any, error) {
	cm, ok := object.(*corev1.ConfigMap)
	if !ok {
		return object, nil // a tombstone
	}
	if cm.ManagedFields != nil { // one that was folded before is read by others
		cm.ManagedFields = nil
	}
	if len(cm.Data) == 0 && len(cm.BinaryData) == 0 || isFolded(cm) {
		return cm, nil
	}
	compressed, err := f.compress(cm)
	if err != nil {
		return nil, fmt.Errorf("fold ConfigMap %s/%s: %w", cm.Namespace, cm.Name, err)
	}
	f.lately.Add(foldedAs(cm), weak.Make(cm))
	return &corev1.ConfigMap{TypeMeta: cm.TypeMeta, ObjectMeta: cm.ObjectMeta, BinaryData: map[string][]byte{foldedKey: compressed}}, nil
}

func isFolded(cm *corev1.ConfigMap) bool {
	_, ok := cm.BinaryData[foldedKey]
	return ok
}

// Unfold returns the whole ConfigMap, which the caller must not change.
func (f *Folding) Unfold(cm *corev1.ConfigMap) (*corev1.ConfigMap, error) {
	if !isFolded(cm) {
		return cm, nil
	}
	if found, ok := f.lately.Get(foldedAs(cm)); ok {
		if whole := found.(weak.Pointer[corev1.ConfigMap]).Value(); whole != nil {
			return whole, nil
		}
	}
	whole, err := f.expand(cm.BinaryData[foldedKey])
	if err != nil {
		return nil, fmt.Errorf("unfold ConfigMap %s/%s: %w", cm.Namespace, cm.Name, err)
	}
	whole.TypeMeta, whole.ObjectMeta = cm.TypeMeta, cm.ObjectMeta
	f.lately.Add(foldedAs(cm), weak.Make(whole))
	return whole, nil
}

// compress returns the texts of a ConfigMap as one compressed text. It prefers speed to size,
// because an event waits for it.
func (f *Folding) compress(cm *corev1.ConfigMap) ([]byte, error) {
	texts, err := (&corev1.ConfigMap{Data: cm.Data, BinaryData: cm.BinaryData}).Marshal()
	if err != nil {
		return nil, err
	}
	writer, _ := f.compressors.Get().(*flate.Writer)
	if writer == nil {
		if writer, err = flate.NewWriter(nil, flate.BestSpeed); err != nil {
			return nil, err
		}
	}
	defer f.compressors.Put(writer)
	var compressed bytes.Buffer
	writer.Reset(&compressed)
	if _, err := writer.Write(texts); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return bytes.Clone(compressed.Bytes()), nil
}

// expand returns a ConfigMap of the compressed texts, and nothing else.
func (f *Folding) expand(compressed []byte) (*corev1.ConfigMap, error) {
	reader, _ := f.expanders.Get().(io.ReadCloser)
	if reader == nil {
		reader = flate.NewReader(nil)
	}
	defer f.expanders.Put(reader)
	if err := reader.(flate.Resetter).Reset(bytes.NewReader(compressed), nil); err != nil {
		return nil, err
	}
	texts, err := io.ReadAll(reader)
	if err != nil {
		return nil, err
	}
	cm := &corev1.ConfigMap{}
	return cm, cm.Unmarshal(texts)
}

// Client returns a client that reads from a cache of folded ConfigMaps. The caller must
// not change what it reads.
func (f *Folding) Client(inner client.Client) client.Client { return unfolding{inner, f} }

type unfolding struct {
	client.Client

	folding *Folding
}

// Get implements client.Client.
func (u unfolding) Get(ctx context.Context, name client.ObjectKey, object client.Object, options ...client.GetOption) error {
	cm, ok := object.(*corev1.ConfigMap)
	if !ok {
		return u.Client.Get(ctx, name, object, options...)
	}
	var folded corev1.ConfigMap
	if err := u.Client.Get(ctx, name, &folded, append(slices.Clip(options), client.UnsafeDisableDeepCopy)...); err != nil {
		return err
	}
	whole, err := u.folding.Unfold(&folded)
	if err != nil {
		return err
	}
	*cm = *whole
	return nil
}
