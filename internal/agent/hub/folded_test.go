package hub

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/krake-observer/krake-observer/test/kit"
)

func foldable(version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "demo", Name: "web", UID: types.UID("1-" + version), ResourceVersion: version,
			Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}, Finalizers: []string{"e"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "somebody"}},
		},
		Data:       map[string]string{"manifest.yaml": strings.Repeat("kind: Deployment\n", 1000) + version, "empty": ""},
		BinaryData: map[string][]byte{"csar": {0, 255, 1}},
	}
}

// TestFolding: a folded ConfigMap unfolds to its former content, whether or not the garbage
// collector has run, and needs little memory until then.
func TestFolding(t *testing.T) {
	for _, collected := range []bool{false, true} {
		t.Run(fmt.Sprintf("collected=%v", collected), func(t *testing.T) {
			f := NewFolding()
			want := foldable("7")
			want.ManagedFields = nil
			folded := fold(t, f, foldable("7"))
			if len(folded.Data) != 0 || len(folded.BinaryData) != 1 || len(folded.BinaryData[foldedKey]) > 500 {
				t.Errorf("folded to %d texts, and %d bytes", len(folded.Data), len(folded.BinaryData[foldedKey]))
			}
			if !equality.Semantic.DeepEqual(folded.ObjectMeta, want.ObjectMeta) {
				t.Errorf("metadata %v, want %v", folded.ObjectMeta, want.ObjectMeta)
			}
			for range 2 { // with a reader and a compressor that were used before
				if collected {
					runtime.GC()
				}
				got, err := f.Unfold(folded.DeepCopy())
				kit.Must(t, err)
				if !equality.Semantic.DeepEqual(got, want) {
					t.Errorf("got %v\nwant %v", got, want)
				}
			}
		})
	}
}

// TestFoldingTellsVersionsApart: versions of one object differ, and so does another object of
// the same name.
func TestFoldingTellsVersionsApart(t *testing.T) {
	f := NewFolding()
	first, second := fold(t, f, foldable("7")), fold(t, f, foldable("8"))
	sameVersion := foldable("7")
	sameVersion.UID = "another"
	sameVersion.Data["manifest.yaml"] = "another"
	third := fold(t, f, sameVersion)
	for folded, want := range map[*corev1.ConfigMap]string{first: foldable("7").Data["manifest.yaml"], second: foldable("8").Data["manifest.yaml"], third: "another"} {
		got, err := f.Unfold(folded)
		if err != nil || got.Data["manifest.yaml"] != want {
			t.Errorf("version %s of %s: %.20q..., %v", folded.ResourceVersion, folded.UID, got.Data["manifest.yaml"], err)
		}
	}
}

// TestFoldingLeavesTheRest: folded objects, objects without texts, and other kinds stay
// unchanged.
func TestFoldingLeavesTheRest(t *testing.T) {
	f := NewFolding()
	folded := fold(t, f, foldable("7"))
	if again := fold(t, f, folded); again != folded {
		t.Error("folded twice")
	}
	empty := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "empty"}}
	if got := fold(t, f, empty); got != empty {
		t.Error("an empty one was folded")
	}
	if got, err := f.Unfold(empty); err != nil || got != empty {
		t.Errorf("an empty one was unfolded: %v, %v", got, err)
	}
	tombstone := cache.DeletedFinalStateUnknown{Key: "demo/web", Obj: folded}
	if got, err := f.Fold(tombstone); err != nil || got != any(tombstone) {
		t.Errorf("a tombstone became %v, %v", got, err)
	}
	damaged := folded.DeepCopy()
	damaged.UID, damaged.BinaryData[foldedKey] = "damaged", damaged.BinaryData[foldedKey][:10]
	if _, err := f.Unfold(damaged); err == nil || !strings.Contains(err.Error(), "demo/web") {
		t.Errorf("damaged: %v", err)
	}
}

func fold(t *testing.T, f *Folding, cm *corev1.ConfigMap) *corev1.ConfigMap {
	t.Helper()
	folded, err := f.Fold(cm)
	kit.Must(t, err)
	return folded.(*corev1.ConfigMap)
}

// BenchmarkFolding measures folding without any reusable buffer.
func BenchmarkFolding(b *testing.B) {
	var manifest strings.Builder
	for i := range 10 {
		for line := range 200 {
			fmt.Fprintf(&manifest, "    field-%d: value-%d-%d\n", line, i, line*7919%1000)
		}
	}
	texts := map[string]string{"manifest.yaml": manifest.String()}
	b.Run("fold", func(b *testing.B) {
		f := NewFolding()
		b.SetBytes(int64(manifest.Len()))
		for b.Loop() {
			if _, err := f.Fold(&corev1.ConfigMap{Data: texts}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("unfold", func(b *testing.B) {
		f := NewFolding()
		folded, err := f.Fold(&corev1.ConfigMap{Data: texts})
		kit.Must(b, err)
		b.SetBytes(int64(manifest.Len()))
		for b.Loop() {
			f.lately.Clear()
			if _, err := f.Unfold(folded.(*corev1.ConfigMap)); err != nil {
				b.Fatal(err)
			}
		}
	})
}
