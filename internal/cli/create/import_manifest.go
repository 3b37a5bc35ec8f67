package create

import (
	"cmp"
	"errors"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krake-observer/krake-observer/internal/apitypes"
	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/pkg/manifest"
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
	for _, path := range []schema.Path{schema.FieldPath("apiVersion"), schema.FieldPath("kind"), schema.FieldPath("metadata", "name")} {
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
		if values, ok := schema.ValueAt(object, schema.FieldPath("metadata", field)).(map[string]any); ok {
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

// asLive returns what kubectl has applied to an object, with the live values. A part that others have
// taken apart is the whole live one: what is left of the applied one may mean something else, as a
// NetworkPolicy's rule without its peers.
func asLive(applied, live map[string]any, kind schema.Type) map[string]any {
	resource := map[string]any{}
	for name, value := range applied {
		have := live[name]
		fields, isObject := value.(map[string]any)
		haveFields, haveObject := have.(map[string]any)
		switch {
		case have == nil || name == "status":
		case name == "metadata":
			resource[name] = metadataAsLive(fields, haveFields)
		case isObject && haveObject:
			resource[name] = fieldsAsLive(fields, haveFields, fieldType(kind, name))
		default:
			resource[name] = valueAsLive(value, have, fieldType(kind, name))
		}
	}
	return resource
}

// metadataAsLive returns the metadata that an Application may set.
func metadataAsLive(applied, live map[string]any) map[string]any {
	metadata := map[string]any{"name": live["name"]}
	for _, field := range []string{"labels", "annotations"} {
		names, _ := applied[field].(map[string]any)
		values, _ := live[field].(map[string]any)
		values = maps.Clone(values)
		maps.DeleteFunc(values, func(name string, _ any) bool {
			_, set := names[name]
			return !set || manifest.IsReserved(name)
		})
		if len(values) > 0 {
			metadata[field] = values
		}
	}
	return metadata
}

func fieldsAsLive(applied, live map[string]any, kind schema.Type) map[string]any {
	fields := map[string]any{}
	for name, value := range applied {
		if have := live[name]; have != nil {
			fields[name] = valueAsLive(value, have, fieldType(kind, name))
		}
	}
	return fields
}

func valueAsLive(applied, live any, kind schema.Type) any {
	switch have := live.(type) {
	case map[string]any:
		if fields, ok := applied.(map[string]any); ok && !lacksField(have, fields) {
			return fieldsAsLive(fields, have, kind)
		}
	case []any:
		if items, ok := applied.([]any); ok {
			return itemsAsLive(items, have, kind)
		}
	}
	return runtime.DeepCopyJSONValue(live)
}

// lacksField reports whether an applied field is gone. The API server drops fields that are zero.
func lacksField(live, applied map[string]any) bool {
	for name, value := range applied {
		if live[name] == nil && !isZero(value) {
			return true
		}
	}
	return false
}

func isZero(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return value == nil || reflect.ValueOf(value).IsZero()
}

// itemsAsLive returns the applied elements in their live order, or the whole live list if one of them
// is not found.
func itemsAsLive(applied, live []any, kind schema.Type) []any {
	var element schema.Type
	var keys []schema.Key
	if kind != nil {
		element, keys = kind.Element(), kind.Keys()
	}
	whole := runtime.DeepCopyJSONValue(live).([]any) //nolint:forcetypeassert // a copy has the same type
	if len(keys) == 0 && len(applied) != len(live) {
		return whole
	}
	type item struct {
		at    int
		value any
	}
	items := make([]item, 0, len(applied))
	for at, value := range applied {
		if len(keys) > 0 {
			at = slices.IndexFunc(live, func(have any) bool { return haveSameKey(value, have, keys) })
		}
		if at < 0 {
			return whole
		}
		items = append(items, item{at, valueAsLive(value, live[at], element)})
	}
	slices.SortFunc(items, func(a, b item) int { return cmp.Compare(a.at, b.at) })
	values := make([]any, 0, len(items))
	for _, item := range items {
		values = append(values, item.value)
	}
	return values
}

func haveSameKey(a, b any, keys []schema.Key) bool {
	first, _ := a.(map[string]any)
	second, _ := b.(map[string]any)
	for _, key := range keys {
		of := func(fields map[string]any) any {
			if value := fields[key.Name]; value != nil {
				return value
			}
			return key.Default
		}
		if of(first) == nil || !reflect.DeepEqual(of(first), of(second)) {
			return false
		}
	}
	return true
}

// fieldType is the type of a field, nil if the kind is unknown.
func fieldType(kind schema.Type, name string) schema.Type {
	if kind == nil {
		return nil
	}
	return kind.Field(name)
}
