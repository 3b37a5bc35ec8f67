package lens

import (
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// partners has the index of the desired element for live elements, by their live paths.
type partners map[string]int

// partnersOf pairs the elements as the observer schema does, and those of other lists as the default
// observer schema of the desired object would.
func partnersOf(e plan.Expected, desired, live map[string]any) partners {
	found := partners{}
	if all, err := schema.Default(desired); err == nil {
		found.record(all.Align(e.Types.Of(e.ID)).Values(desired, live))
	}
	found.record(e.Schema.Values(desired, live))
	return found
}

func (p partners) record(values []schema.Value) {
	for _, value := range values {
		for i := range value.Path {
			if value.Path[i].Index >= 0 {
				p[value.Path[:i+1].String()] = value.Place[i].Index
			}
		}
	}
}

// of returns the index of the desired element, or -1. A list that is not desired has the same indices.
func (p partners) of(list cursor, element schema.Path, index int, desired map[string]any) int {
	if list.place == nil {
		return -1
	}
	if at, ok := p[element.String()]; ok {
		return at
	}
	if items, ok := schema.ValueAt(desired, list.place).([]any); ok && len(items) > 0 {
		return -1
	}
	return index
}
