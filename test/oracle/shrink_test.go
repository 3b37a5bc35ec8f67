package oracle

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/plan"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/kit"
)

// edit is a changed value of an object. The value nil is removed.
type edit struct {
	path  schema.Path
	value any
}

// shrink returns the smallest manifest and change that it finds, for which the patches of the engine end
// elsewhere than an apply. It is empty if the engine alone does not show what the agent did.
func (s *subject) shrink(t *testing.T, d *drift) string {
	t.Helper()
	manifest, edits := s.object.DeepCopy(), d.edits
	if len(edits) == 0 || !s.isDefault || s.object.GetNamespace() == "" || !s.fails(t, manifest, edits) {
		return ""
	}
	for i := len(edits) - 1; i >= 0 && len(edits) > 1; i-- {
		if fewer := slices.Delete(slices.Clone(edits), i, i+1); s.fails(t, manifest, fewer) {
			edits = fewer
		}
	}
	tried := map[string]bool{}
	for again := true; again; {
		again = false
		for _, path := range spots(manifest.Object, nil) {
			smaller := manifest.DeepCopy()
			if name := path.String(); tried[name] || !set(smaller.Object, path, nil) {
				continue
			}
			if tried[path.String()] = true; s.fails(t, smaller, edits) {
				manifest, again = smaller, true
				break
			}
		}
	}
	manifest.SetName(s.object.GetName())
	text := "the smallest manifest and change:\n" + yamlOf(manifest.Object)
	for _, one := range edits {
		text += fmt.Sprintf("---\n%s: %s", one.path, kit.JSON(t, one.value))
	}
	return text
}

// fails reports whether the engine repairs a change of an object of this manifest, but ends elsewhere than
// an apply.
func (s *subject) fails(t *testing.T, manifest *unstructured.Unstructured, edits []edit) bool {
	t.Helper()
	manifest = manifest.DeepCopy()
	manifest.SetName(kit.UniqueName("shrink"))
	app := &application.Application{NamespacedName: types.NamespacedName{Namespace: manifest.GetNamespace(), Name: "shrink"}, Spec: application.Spec{Manifest: yamlOf(manifest.Object)}}
	cached, err := (*plan.Cache)(nil).Of(app)
	if err != nil {
		return false
	}
	objects := cached.Drafts()
	objects[0].Namespace = manifest.GetNamespace()
	kit.Must(t, cached.Complete(app, objects))
	object := objects[0]
	live, err := s.client.Create(t.Context(), manifest, metav1.CreateOptions{FieldManager: "krake-observer"})
	if err != nil {
		return false
	}
	defer func() { kit.Must(t, s.client.Delete(t.Context(), manifest.GetName(), metav1.DeleteOptions{})) }()
	kit.Must(t, object.Accept(live.Object, nil, nil))
	changed := live.DeepCopy()
	for _, one := range edits {
		if !set(changed.Object, one.path, one.value) {
			return false
		}
	}
	if _, err := s.client.Update(t.Context(), changed, metav1.UpdateOptions{FieldManager: "editor"}); err != nil {
		return false
	}
	for range maxWrites + 1 {
		if live, err = s.client.Get(t.Context(), manifest.GetName(), metav1.GetOptions{}); err != nil {
			return false
		}
		found := object.Schema.Compare(object.Desired(), live.Object).Drift()
		if len(found) == 0 {
			break
		}
		after, err := s.client.Patch(t.Context(), manifest.GetName(), types.JSONPatchType, kit.JSON(t, found.Patch()), metav1.PatchOptions{FieldManager: "krake-observer"})
		if err != nil {
			return false
		}
		kit.Must(t, object.Accept(after.Object, found, nil))
	}
	applied, err := kit.ServerSideApply(t.Context(), s.client, manifest)
	return err == nil && (kit.Difference(live, applied) != "" || len(object.Schema.Compare(object.Desired(), live.Object).Drift()) > 0)
}
