package lens

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Toggle changes whether a field is observed, or whether the length of a list is.
type Toggle struct {
	Place schema.Path `json:"place"`
	// Length is the present length of the list; 0 toggles the field itself.
	Length int `json:"length,omitempty"`
}

// Edit returns an observer schema in which each of the fields is observed if it was not before, and is
// not observed if it was. Everything else stays. Edit does not change its arguments.
func Edit(document map[string]any, toggles []Toggle) map[string]any {
	var edited any = runtime.DeepCopyJSON(document)
	for _, t := range toggles {
		change := toggleField
		if t.Length > 0 {
			change = func(node any) any { return toggleLength(node, t.Length) }
		}
		edited = changeAt(edited, t.Place, change)
	}
	fields, _ := edited.(map[string]any)
	return fields
}

// absent stands for what an observer schema does not have: a nil is an observed value.
type absent struct{}

func toggleField(node any) any {
	if node == any(absent{}) {
		return nil
	}
	return absent{}
}

func toggleLength(node any, length int) any {
	items, ok := node.([]any)
	if !ok && node != any(absent{}) {
		return node // it is observed as a whole
	}
	elements, limits := elementsOf(items)
	if limits.isBounded() {
		return listOf(elements, bounds{least: len(elements)}, items)
	}
	return listOf(elements, bounds{length, length}, items)
}

// changeAt changes what an observer schema has at a place. It adds the parts on the way, and removes
// those that are left empty.
func changeAt(node any, place schema.Path, change func(any) any) any {
	if len(place) == 0 {
		return change(node)
	}
	if place[0].Index < 0 {
		return changeField(node, place, change)
	}
	items, ok := node.([]any)
	if !ok && node != any(absent{}) {
		return node // it is observed as a whole
	}
	elements, limits := elementsOf(items)
	isNatural := limits.least == len(elements) // nothing was said of the length
	index := place[0].Index
	for len(elements) <= index {
		elements = append(elements, map[string]any{})
	}
	elements[index] = changeAt(elements[index], place[1:], change)
	if elements[index] == any(absent{}) {
		elements[index] = map[string]any{}
	}
	if isEmpty(elements[index]) {
		for len(elements) > 0 && isEmpty(elements[len(elements)-1]) {
			elements = elements[:len(elements)-1]
		}
	}
	if isNatural && !limits.isBounded() {
		limits.least = 0
	}
	limits.least = max(limits.least, len(elements))
	if limits.isBounded() {
		limits.most = max(limits.most, limits.least)
	}
	return listOf(elements, limits, items)
}

func changeField(node any, place schema.Path, change func(any) any) any {
	fields, ok := node.(map[string]any)
	switch {
	case node == any(absent{}):
		fields = map[string]any{}
	case !ok:
		return node // it is observed as a whole
	}
	name := place[0].Field
	below, known := fields[name]
	if !known {
		below = absent{}
	}
	if below = changeAt(below, place[1:], change); below == any(absent{}) {
		delete(fields, name)
	} else {
		fields[name] = below
	}
	if len(fields) == 0 {
		return absent{}
	}
	return fields
}

func isEmpty(element any) bool {
	fields, ok := element.(map[string]any)
	return ok && len(fields) == 0
}

// bounds are the limits of a list's length. A maximum of 0 is none.
type bounds struct{ least, most int }

func (b bounds) isBounded() bool { return b.most > 0 }

// String returns "from 1 to 4 elements".
func (b bounds) String() string {
	switch {
	case b.most == 0 && b.least == 0:
		return "any number of elements"
	case b.most == 0:
		return "at least " + elements(b.least)
	case b.most == b.least:
		return elements(b.least)
	}
	return fmt.Sprintf("from %d to %s", b.least, elements(b.most))
}

func elements(count int) string {
	if count == 1 {
		return "1 element"
	}
	return fmt.Sprintf("%d elements", count)
}

// elementsOf splits a list of an observer schema, which may be nil, into its elements and its bounds.
func elementsOf(items []any) ([]any, bounds) {
	if len(items) == 0 {
		return nil, bounds{}
	}
	return items[: len(items)-1 : len(items)-1], boundsOf(items) // callers append
}

func boundsOf(items []any) bounds {
	control, _ := items[len(items)-1].(map[string]any)
	least, _ := control[schema.MinLengthKey].(int64)
	most, _ := control[schema.MaxLengthKey].(int64)
	return bounds{int(least), int(most)}
}

// ownKeys returns the keys that the user has set for a list.
func ownKeys(items []any) []string {
	control, _ := items[len(items)-1].(map[string]any)
	switch keys := control[schema.ListKeyKey].(type) {
	case string:
		return []string{keys}
	case []any:
		names := make([]string, 0, len(keys))
		for _, key := range keys {
			names = append(names, fmt.Sprint(key))
		}
		return names
	}
	return nil
}

// listOf returns a list of an observer schema, with the keys that a former list has. It is absent if nothing is left of it.
func listOf(elements []any, b bounds, former []any) any {
	if len(elements) == 0 && !b.isBounded() {
		return absent{}
	}
	control := map[string]any{}
	if len(former) > 0 {
		if set, _ := former[len(former)-1].(map[string]any); set != nil {
			control = set
		}
	}
	control[schema.MinLengthKey], control[schema.MaxLengthKey] = int64(b.least), int64(b.most)
	return append(elements, control)
}
