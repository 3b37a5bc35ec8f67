package create

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krake-observer/krake-observer/internal/apitypes"
	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// controlPlane are the managers of the objects that control planes create, as distributions call
// them.
var controlPlane = []string{"kube-controller-manager", "kube-apiserver", "k3s", "k0s", "kubelite"}

var errOfControlPlane = errors.New("the control plane has created it")

// importOf returns the manifest of a live object and its observer schema. The manifest has the
// fields that the author of the object has set, with their live values, so that the agent has
// nothing to change. The observer schema leaves out those of them that others write, too.
func importOf(live map[string]any, try trial, types *apitypes.Types) (map[string]any, proposal, error) {
	applied := lastApplied(live)
	if applied != nil && !isAbout(applied, live) {
		applied = nil
	}
	of, err := propose(applied, live, nil, types)
	if err == nil && slices.Contains(controlPlane, of.author) {
		err = errOfControlPlane
	}
	if err == nil {
		of, err = withoutDefaults(of, live, try, types)
	}
	if err != nil {
		return nil, proposal{}, err
	}
	var resource map[string]any
	if kind := types.Of(of.id); applied == nil {
		resource = without(live, of.left, kind)
	} else {
		resource = asLive(applied, live, kind)
	}
	proposed, err := propose(resource, live, nil, types)
	if err != nil {
		return nil, proposal{}, err
	}
	proposed.note = of.note
	for _, left := range of.left {
		if !slices.ContainsFunc(proposed.left, func(l leftOut) bool { return slices.Equal(l.path, left.path) }) {
			proposed.left = append(proposed.left, left)
		}
	}
	proposed.left = slices.DeleteFunc(proposed.left, func(l leftOut) bool { return slices.Contains(obvious, l.reason) })
	return resource, proposed, nil
}

// isAbout reports whether kubectl has applied a manifest to this very object. The annotation with it
// may be of another version of the kind, or copied from another object.
func isAbout(applied, live map[string]any) bool {
	for _, path := range []schema.Path{lens.PathOf("apiVersion"), lens.PathOf("kind"), lens.PathOf("metadata", "name")} {
		if schema.ValueAt(applied, path) != schema.ValueAt(live, path) {
			return false
		}
	}
	return true
}

// obvious are the reasons that are the same for all objects.
var obvious = []string{onlyServer, notNecessary, ofKubectl}

// without returns a live object without the fields that a proposal leaves out. A plain value of
// the spec that others write stays: the API server may need it to create the object again, as the
// image of a container. An element stays, too, if the others in the list are found by their places.
func without(live map[string]any, left []leftOut, kind schema.Type) map[string]any {
	object := runtime.DeepCopyJSON(live)
	delete(object, "status")
	from := &unstructured.Unstructured{Object: live}
	metadata := map[string]any{"name": from.GetName()}
	for _, field := range []string{"labels", "annotations"} {
		if values, ok := schema.ValueAt(object, lens.PathOf("metadata", field)).(map[string]any); ok {
			metadata[field] = values
		}
	}
	object["metadata"] = metadata
	for _, l := range slices.Backward(left) { // the last elements of a list first: the others keep their places
		if !l.isNeeded(schema.ValueAt(object, l.path)) && (l.path[len(l.path)-1].Index < 0 || len(schema.KeysAt(kind, l.path[:len(l.path)-1])) > 0) {
			drop(object, l.path)
		}
	}
	return object
}

// isNeeded reports whether a manifest keeps a value that the observer schema leaves out.
func (l leftOut) isNeeded(value any) bool {
	ofProposal := []string{onlyServer, notSettable, ofAgent, ofStatus, ofScheduler, ofKubectl, ofDefaults, notNecessary}
	for _, manager := range controlPlane {
		ofProposal = append(ofProposal, manager+" writes it") // as the volume that a PersistentVolumeClaim got
	}
	return l.path[0].Field == "spec" && value != nil && !lens.IsComposite(value) && !slices.Contains(ofProposal, l.reason) &&
		!slices.ContainsFunc(l.path, func(step schema.Step) bool { return step.Field == "metadata" })
}

// drop removes a field or an element, and then the objects around it that are empty without it.
func drop(object map[string]any, path schema.Path) {
	last := path[len(path)-1]
	switch parent := schema.ValueAt(object, path[:len(path)-1]).(type) {
	case map[string]any:
		delete(parent, last.Field)
		if len(parent) == 0 && len(path) > 1 && path[len(path)-2].Index < 0 {
			drop(object, path[:len(path)-1])
		}
	case []any:
		above := path[:len(path)-1]
		if owner, ok := schema.ValueAt(object, above[:len(above)-1]).(map[string]any); ok && last.Index < len(parent) {
			owner[above[len(above)-1].Field] = slices.Delete(parent, last.Index, last.Index+1)
		}
	}
}
