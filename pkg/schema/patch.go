package schema

import (
	"encoding/json"
	"slices"
	"strconv"
)

// Patch is a JSON Patch (RFC 6902).
type Patch []Operation

// Operation is one operation of a [Patch]: add, replace, remove or move.
type Operation struct {
	Op   string `json:"op"`
	Path string `json:"path"`
	// From is the path from which move takes the value.
	From  string `json:"-"`
	Value any    `json:"value"`
}

// MarshalJSON omits the value of a removal and of a move. In other operations a null is a value, and an API
// server refuses an operation without one.
func (o Operation) MarshalJSON() ([]byte, error) {
	if o.Op == "remove" {
		return json.Marshal(struct {
			Op   string `json:"op"`
			Path string `json:"path"`
		}{o.Op, o.Path})
	}
	if o.Op == "move" {
		return json.Marshal(struct {
			Op   string `json:"op"`
			From string `json:"from"`
			Path string `json:"path"`
		}{o.Op, o.From, o.Path})
	}
	type operation Operation // without this method
	return json.Marshal(operation(o))
}

// Patch returns the JSON Patch that restores the observed fields of the live object, and changes
// nothing else. It addresses list elements by index. It is therefore valid
// only for this live object, and needs its resourceVersion as a guard, see [Patch.Guard]. It is
// empty if no difference can be removed.
func (s Schema) Patch(desired, live map[string]any) Patch {
	return s.Compare(desired, live).Patch()
}

const (
	// maxOperations is one less than the limit of an API server, because the guard needs one.
	maxOperations = 9_999
	// maxPaths bounds the text of the paths, because each may contain a long name.
	maxPaths = 1 << 20
)

// Patch returns the operations that revert the drift among the differences of [Schema.Compare]. If
// an API server does not accept so many in one request, it returns the first ones. They are a valid
// patch, and another comparison finds the others.
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
	case d.Kind == TooShort && d.At == nil:
		return slices.Concat(growth(pointer, d.missing()), cuts(pointer, d.Cut))
	case d.Kind == TooShort, d.Kind == TooLong, d.Kind == Moved:
		return slices.Concat(cuts(pointer, d.Cut), moves(pointer, d.Moves), inserts(pointer, d.missing(), d.At))
	}
	return nil
}

// whenAbsent returns the operation for an absent value. A null in a list already has its place,
// where add would insert.
func (d Difference) whenAbsent() string {
	if d.Path[len(d.Path)-1].Index != notAnIndex {
		return "replace"
	}
	return "add"
}

// room returns the number of a list's elements that fit into a patch, plus one. The caller thus
// notices that the patch is full.
func room(list string) int { return min(maxOperations, maxPaths/(len(list)+1)) + 1 }

func growth(list string, items []any) Patch {
	items = items[:min(len(items), room(list))]
	patch := make(Patch, 0, len(items))
	for _, item := range items {
		patch = append(patch, Operation{Op: "add", Path: list + "/-", Value: item})
	}
	return patch
}

func moves(list string, moves []Move) Patch {
	patch := make(Patch, 0, len(moves))
	for _, move := range moves[:min(len(moves), room(list))] {
		patch = append(patch, Operation{Op: "move", From: elementOf(list, move.From), Path: elementOf(list, move.To)})
	}
	return patch
}

func inserts(list string, items []any, indices []int) Patch {
	patch := make(Patch, 0, len(indices))
	for i, item := range items[:min(len(indices), room(list))] {
		patch = append(patch, Operation{Op: "add", Path: elementOf(list, indices[i]), Value: item})
	}
	return patch
}

func elementOf(list string, index int) string { return list + "/" + strconv.Itoa(index) }

// cuts removes elements from the end, so that no index moves before it is used.
func cuts(list string, indices []int) Patch {
	indices = indices[max(0, len(indices)-room(list)):]
	patch := make(Patch, 0, len(indices))
	for _, i := range slices.Backward(indices) {
		patch = append(patch, Operation{Op: "remove", Path: elementOf(list, i)})
	}
	return patch
}

// Guard returns the patch, preceded by the condition that the object still has this
// resourceVersion. The condition replaces the value with the same value. An API server answers a
// stale one with 409 Conflict, but would answer "test" with 422, like any mistake.
func (p Patch) Guard(resourceVersion string) Patch {
	guard := Operation{Op: "replace", Path: "/metadata/resourceVersion", Value: resourceVersion}
	return slices.Concat(Patch{guard}, p)
}

// Overlay returns the live object after [Schema.Patch]. Its observed fields are as desired, and all
// others are unchanged.
func (s Schema) Overlay(desired, live map[string]any) map[string]any {
	overlaid, _ := clone(live).(map[string]any)
	for _, difference := range s.Compare(desired, live) {
		if difference.mendable() {
			change(overlaid, difference.Path, difference.revert)
		}
	}
	return overlaid
}

// revert returns the desired value at the path of the difference.
func (d Difference) revert(value any) any {
	items, _ := value.([]any)
	switch d.Kind {
	case TooShort:
		if d.At == nil {
			return append(items, itemsOf(clone(d.Want))...)
		}
		return d.rearrange(items)
	case TooLong, Moved:
		return d.rearrange(items)
	case Changed, Unknown:
	}
	return clone(d.Want)
}

// rearrange cuts, moves and inserts.
func (d Difference) rearrange(items []any) []any {
	items = without(items, d.Cut)
	for _, move := range d.Moves {
		item := items[move.From]
		items = slices.Insert(slices.Delete(items, move.From, move.From+1), move.To, item)
	}
	for i, item := range d.missing() {
		if i < len(d.At) {
			items = slices.Insert(items, d.At[i], clone(item))
		}
	}
	return items
}

// without returns the items except those at the indices, which ascend.
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

// change replaces a value at the path, below existing objects and lists.
func change(root any, path Path, value func(any) any) {
	parent, last := ValueAt(root, path[:len(path)-1]), path[len(path)-1]
	switch parent := parent.(type) {
	case map[string]any:
		if parent[last.Field] = value(parent[last.Field]); parent[last.Field] == nil {
			delete(parent, last.Field)
		}
	case []any:
		parent[last.Index] = value(parent[last.Index])
	}
}
