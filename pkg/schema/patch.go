package schema

import (
	"encoding/json"
	"slices"
	"strconv"
)

// Patch is a JSON Patch (RFC 6902).
type Patch []Operation

// Operation is one operation of a [Patch]: add, replace or remove.
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// MarshalJSON leaves the value out where it has no meaning. Elsewhere a null is
// a value: an operation that lacks it is refused.
func (o Operation) MarshalJSON() ([]byte, error) {
	if o.Op == "remove" {
		return json.Marshal(struct {
			Op   string `json:"op"`
			Path string `json:"path"`
		}{o.Op, o.Path})
	}
	type operation Operation // without this method
	return json.Marshal(operation(o))
}

// Patch gives the JSON Patch that brings the observed fields of the live
// object back to the desired ones and touches nothing else (specification
// 1.7.2). It addresses list elements by index: it holds for this very live
// object and has to be guarded by its resourceVersion, see [Patch.Guard]. It is
// empty if nothing can be mended.
func (s Schema) Patch(desired, live map[string]any) Patch {
	return s.Compare(desired, live).Patch()
}

const (
	// maxOperations is one less than an API server takes, for the guard.
	maxOperations = 9_999
	// maxPaths bounds the text of the paths: a name may be long, and stand in each.
	maxPaths = 1 << 20
)

// Patch gives the operations that revert the drift among the differences of
// [Schema.Compare]. Of more than an API server takes in one request it gives the
// first: they can be applied by themselves, and another comparison finds the rest.
func (d Differences) Patch() Patch {
	var patch Patch
	length := 0
	for _, difference := range d {
		for _, operation := range difference.operations() {
			if length += len(operation.Path); len(patch) == maxOperations || length > maxPaths && len(patch) > 0 {
				return patch
			}
			patch = append(patch, operation)
		}
	}
	return patch
}

func (d Difference) operations() Patch {
	pointer := d.Path.Pointer()
	switch {
	case !d.mendable():
		return nil
	case d.Kind == Changed && d.Have == nil:
		return Patch{{Op: d.whenAbsent(), Path: pointer, Value: d.Want}}
	case d.Kind == Changed && d.Want == nil: // see Released
		return Patch{{Op: "remove", Path: pointer}}
	case d.Kind == Changed:
		return Patch{{Op: "replace", Path: pointer, Value: d.Want}}
	case d.Kind == TooShort && d.Have == nil:
		return Patch{{Op: d.whenAbsent(), Path: pointer, Value: d.Want}}
	case d.Kind == TooShort:
		return slices.Concat(growth(pointer, d.missing()), cuts(pointer, d.Cut))
	case d.Kind == TooLong:
		return cuts(pointer, d.Cut)
	}
	return nil
}

// mendable tells if anything can be done about the difference: nothing can
// about an unknown value, nor where the desired list itself has an illegal length.
func (d Difference) mendable() bool {
	switch d.Kind {
	case Changed:
		return true
	case TooShort:
		return len(d.missing()) > 0
	case TooLong:
		return len(d.Cut) > 0
	case Unknown:
	}
	return false
}

// whenAbsent: a null in a list has its place already, and add would insert.
func (d Difference) whenAbsent() string {
	if d.Path[len(d.Path)-1].Index != notAnIndex {
		return "replace"
	}
	return "add"
}

func (d Difference) missing() []any {
	items, _ := d.Want.([]any)
	return items
}

func (d Difference) elements() []any {
	items, _ := d.Have.([]any)
	return items
}

// room is for how many elements of a list there is room in a patch, and one more,
// so that whoever counts sees that it is full.
func room(list string) int { return min(maxOperations, maxPaths/(len(list)+1)) + 1 }

func growth(list string, items []any) Patch {
	items = items[:min(len(items), room(list))]
	patch := make(Patch, 0, len(items))
	for _, item := range items {
		patch = append(patch, Operation{Op: "add", Path: list + "/-", Value: item})
	}
	return patch
}

// cuts removes from the end, so that no index moves before it is used.
func cuts(list string, indices []int) Patch {
	indices = indices[max(0, len(indices)-room(list)):]
	patch := make(Patch, 0, len(indices))
	for _, i := range slices.Backward(indices) {
		patch = append(patch, Operation{Op: "remove", Path: list + "/" + strconv.Itoa(i)})
	}
	return patch
}

// Guard puts the condition before the patch that the object still has this
// resourceVersion. It replaces the value by itself: a stale one is then answered
// by a 409 Conflict, where a "test" would be answered by a 422 like any mistake.
func (p Patch) Guard(resourceVersion string) Patch {
	guard := Operation{Op: "replace", Path: "/metadata/resourceVersion", Value: resourceVersion}
	return slices.Concat(Patch{guard}, p)
}

// Overlay gives the live object as it is after [Schema.Patch]: its observed
// fields as desired, everything else as it was.
func (s Schema) Overlay(desired, live map[string]any) map[string]any {
	overlaid, _ := clone(live).(map[string]any)
	for _, difference := range s.Compare(desired, live) {
		if difference.mendable() {
			change(overlaid, difference.Path, difference.revert)
		}
	}
	return overlaid
}

// revert gives the value at the path of the difference as it should be.
func (d Difference) revert(value any) any {
	items, _ := value.([]any)
	switch d.Kind {
	case TooShort:
		return append(items, clonedItems(d.missing())...)
	case TooLong:
		return without(items, d.Cut)
	case Changed, Unknown:
	}
	return clone(d.Want)
}

// without leaves out the elements at the indices, which ascend.
func without(items []any, indices []int) []any {
	rest := make([]any, 0, len(items))
	for i, item := range items {
		if len(indices) > 0 && indices[0] == i {
			indices = indices[1:]
		} else {
			rest = append(rest, item)
		}
	}
	return rest
}

// change puts in a value at the path, below objects and lists that are there.
func change(root any, path Path, value func(any) any) {
	parent, last := valueAt(root, path[:len(path)-1]), path[len(path)-1]
	switch parent := parent.(type) {
	case map[string]any:
		parent[last.Field] = value(parent[last.Field])
	case []any:
		parent[last.Index] = value(parent[last.Index])
	}
}
