package schema

import (
	"slices"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// Released gives what is to be removed because it left the spec: a field that
// the agent has set or kept, and that nobody asks for any more. As after kubectl
// apply, "privileged: true" that was deleted from the manifest does not stay.
//
// Former is what [Schema.Project] gave of the object under its former schema,
// learned is what [Schema.Learned] gave then. The projection must be one without
// drift: in another, a value may be somebody else's. A field of it is released if
// the schema does not observe it, the desired object does not have it, it was not
// learned, and its live value is still the former one. What somebody has changed
// since stays, and so do the identity, what only the server sets, and our marks.
//
// An object or a list goes as a whole only if the live one holds nothing else: a
// list, if it still has exactly the former elements, all of which were observed.
// No element is removed by itself: that is a matter of the list's length. The
// elements of a list are found by key where the schema knows it, by index where
// it does not; where it does not look into the list at all, by index, if the
// element is as it was.
//
// Their patch is to be put before that of [Schema.Compare] for the same live
// object. It takes fields from elements, and so moves no index.
func (s Schema) Released(desired, former, learned, live map[string]any) Differences {
	var r releasing
	r.fields(sight{s.guarded().root, desired, former, learned, live})
	for _, difference := range r.found {
		slices.Reverse(difference.Path)
	}
	return r.found
}

// guarded is the schema with all observed that is not the agent's to remove.
func (s Schema) guarded() Schema {
	for _, path := range append(serverOwned(), []string{"metadata", "namespace"}) {
		s = s.Unobserve(path...).Observe(path...)
	}
	return s
}

// sight is one place, as each of the arguments has it. An absent node is nil: the
// schema does not observe the place.
type sight struct {
	node                           node
	desired, former, learned, live any
}

// into looks at a field.
func (s sight) into(name string) sight {
	return sight{
		node:    child(s.node, Step{Field: name, Index: notAnIndex}),
		desired: fieldOf(s.desired, name),
		former:  fieldOf(s.former, name),
		learned: fieldOf(s.learned, name),
		live:    fieldOf(s.live, name),
	}
}

func fieldOf(value any, name string) any {
	fields, _ := value.(map[string]any)
	return fields[name]
}

// wanted tells if somebody asks for the place, or for a part of it.
func (s sight) wanted() bool { return s.node != nil || s.desired != nil || s.learned != nil }

// releasing walks the former projection. As in a comparison, till the end the
// last step of a path comes first.
type releasing struct{ found Differences }

func (r *releasing) step(step Step, walk func()) {
	before := len(r.found)
	walk()
	for i := before; i < len(r.found); i++ {
		r.found[i].Path = append(r.found[i].Path, step)
	}
}

// fields releases the fields of an object, and tells if that is all it has.
func (r *releasing) fields(here sight) bool {
	former, _ := here.former.(map[string]any)
	live, isObject := here.live.(map[string]any)
	released := 0
	for _, name := range sortedNames(former) {
		if manifest.IsReserved(name) {
			continue
		}
		r.step(Step{Field: name, Index: notAnIndex}, func() {
			if r.field(here.into(name)) {
				released++
			}
		})
	}
	return isObject && released == present(live) && (released > 0 || present(former) == 0)
}

func present(fields map[string]any) int {
	count := 0
	for _, value := range fields {
		if value != nil {
			count++
		}
	}
	return count
}

// field releases what is at a field, and tells if that is the whole of it.
func (r *releasing) field(here sight) bool {
	if here.former == nil || here.live == nil {
		return false
	}
	if here.wanted() {
		r.parts(here)
		return false
	}
	before := len(r.found)
	if !r.rest(here) {
		return false
	}
	r.found = append(r.found[:before], Difference{Kind: Changed, Have: here.live})
	return true
}

// rest is about a value that nobody asks for. It tells if that is still what it
// was; of an object that is not, the fields that are were released.
func (r *releasing) rest(here sight) bool {
	switch former := here.former.(type) {
	case map[string]any:
		return r.fields(here)
	case []any:
		observed, length := lengthOf(former)
		return len(observed) == length && asBefore(former, here.live)
	}
	return equal(here.former, here.live)
}

// parts looks into a value of which a part is asked for.
func (r *releasing) parts(here sight) {
	switch here.node.(type) {
	case nil, object, list:
	default:
		return // observed as a whole
	}
	switch here.former.(type) {
	case map[string]any:
		if here.isObject() {
			r.fields(here)
		}
	case []any:
		if here.isList() {
			r.elements(here)
		}
	}
}

// isObject tells if the place is one for everybody. One that was learned as an
// empty object was not the manifest's, and nothing in it is.
func (s sight) isObject() bool {
	_, isList := s.node.(list)
	_, desired := s.desired.(map[string]any)
	learned, isLearned := s.learned.(map[string]any)
	return !isList && (desired || s.desired == nil) && (s.learned == nil || isLearned && len(learned) > 0)
}

// isList tells if the place is one for everybody; its elements must be desired.
func (s sight) isList() bool {
	_, isObject := s.node.(object)
	_, desired := s.desired.([]any)
	_, learned := s.learned.([]any)
	return !isObject && desired && (learned || s.learned == nil)
}

// elements looks into the elements of a list that are desired still.
func (r *releasing) elements(here sight) {
	n, _ := here.node.(list) // one that is not in the schema has neither keys nor items
	listed := here.node != nil
	desired, live := itemsOf(here.desired), itemsOf(here.live)
	former, _ := lengthOf(itemsOf(here.former))
	known := n.learnedFrom(itemsOf(here.learned), desired)
	var room scratch
	pairs := n.pair(desired, live, &room)
	places := n.formerPlaces(former, desired)
	for i, element := range former {
		place, certain := i, listed && !pairs.byKey
		if places != nil && n.keys.known(element) {
			place, certain = int(places[i]), true
		}
		if place == absent || at(desired, place) == nil {
			continue
		}
		partner := pairs.partner(place)
		if partner == absent || !certain && !asBefore(element, live[partner]) {
			continue
		}
		r.step(Step{Index: partner}, func() {
			r.parts(sight{child(n, Step{Index: place}), desired[place], element, known.at(place), live[partner]})
		})
	}
}

func itemsOf(value any) []any {
	items, _ := value.([]any)
	return items
}

// formerPlaces gives the places that former elements have now, nil if no key
// tells them.
func (n list) formerPlaces(former, desired []any) []int32 {
	if !n.byKey(desired) || !n.keys.distinct(desired) {
		return nil
	}
	return n.keys.lookUp(make([]int32, 0, len(former)), former, desired, make([]bool, len(desired)))
}

// asBefore tells if a live value still has all that was observed of it.
func asBefore(former, live any) bool {
	switch former := former.(type) {
	case map[string]any:
		fields, ok := live.(map[string]any)
		for name, value := range former {
			if value != nil && !asBefore(value, fields[name]) {
				return false
			}
		}
		return ok
	case []any:
		if observed, length := lengthOf(former); len(observed) < len(former) {
			elements, ok := live.([]any)
			return ok && elementsAsBefore(observed, length, elements)
		}
	}
	return equal(former, live) // a list without its length was observed as a whole
}

func elementsAsBefore(observed []any, length int, live []any) bool {
	if length != len(live) || length < len(observed) {
		return false
	}
	inOrder := true
	for i, element := range observed {
		inOrder = inOrder && asBefore(element, live[i])
	}
	return inOrder || len(observed) == length && inAnyOrder(observed, live)
}

// inAnyOrder tells if the objects of two lists are the same, whatever their order. A
// projection has them in the order of the schema, which the live list need not have
// where keys tell them; and the keys are not known any more of what left the spec.
// So a field has to do that is another one in each of them.
func inAnyOrder(former, live []any) bool {
	first, _ := at(former, 0).(map[string]any)
	for _, name := range sortedNames(first) {
		if places := placesBy(name, live); places != nil {
			return sameAt(places, name, former, live)
		}
	}
	return false
}

func sameAt(places map[any]int, name string, former, live []any) bool {
	for _, element := range former {
		value, _ := scalarOf(element, name)
		place, found := places[value]
		if !found || !asBefore(element, live[place]) {
			return false
		}
		delete(places, value)
	}
	return true
}

// placesBy gives the place of each element by the value of a field, nil if that does
// not tell them apart.
func placesBy(name string, elements []any) map[any]int {
	places := make(map[any]int, len(elements))
	for i, element := range elements {
		value, ok := scalarOf(element, name)
		if _, twice := places[value]; twice || !ok {
			return nil
		}
		places[value] = i
	}
	return places
}

// scalarOf gives a field that is a text or a number.
func scalarOf(element any, name string) (value any, ok bool) {
	switch value := fieldOf(element, name).(type) {
	case string, int64, float64:
		return value, true
	}
	return nil, false
}

// lessons are what was learned from the elements of a list.
type lessons struct {
	// byPlace is that of each place, where keys tell; otherwise any may be of all.
	byPlace []any
	all     any
}

// at gives what was learned in the element at the place.
func (l lessons) at(place int) any {
	if l.byPlace != nil {
		return l.byPlace[place]
	}
	return l.all
}

// learnedFrom gives the lessons of a list. Whether it was learned by key or by
// index, only the former schema knew. So where the keys do not tell, a field that
// was learned in one element counts as learned in all of them. An empty element
// only holds the place of another.
func (n list) learnedFrom(items, desired []any) lessons {
	if !n.byKey(desired) || !n.keys.distinct(desired) || !n.byKey(items) || !n.keys.distinct(items) {
		var all any
		for _, item := range items {
			if fields, ok := item.(map[string]any); !ok || len(fields) > 0 {
				all = merge(all, item)
			}
		}
		return lessons{all: all}
	}
	byPlace := make([]any, 0, len(desired))
	for _, partner := range n.keys.lookUp(make([]int32, 0, len(desired)), desired, items, make([]bool, len(items))) {
		if partner == absent {
			byPlace = append(byPlace, nil)
		} else {
			byPlace = append(byPlace, items[partner])
		}
	}
	return lessons{byPlace: byPlace}
}

// merge adds what another value has, and gives the result. What was learned as a
// whole, an empty object too, stays such.
func merge(into, from any) any {
	if into == nil {
		return clone(from)
	}
	switch from := from.(type) {
	case nil:
		return into
	case map[string]any:
		if fields, ok := into.(map[string]any); ok && len(fields) > 0 && len(from) > 0 {
			for name, value := range from {
				fields[name] = merge(fields[name], value)
			}
			return fields
		}
	case []any:
		if items, ok := into.([]any); ok {
			return append(items, from...)
		}
	}
	return true // nothing to look into
}
