package schema

import (
	"slices"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// Released returns the values to remove because they left the spec: fields that the agent has set
// or kept, and that are no longer desired. As with kubectl apply, "privileged: true" does not stay
// after its removal from the manifest.
//
// former is the result of [Schema.Project] under the former schema, and learned that of
// [Schema.Learned] at that time. The projection must have been free of drift, because a drifted
// value may belong to another client. A field of the projection is released under these conditions:
//
//   - The schema does not observe it, the desired object does not have it, and it was not learned.
//   - Its live value is still the former one.
//   - It is not in a closed object, from which Compare removes it.
//
// A value that another client has changed since stays. The identity, fields that only the server
// sets, and our marks stay too.
//
// An object or a list goes as a whole only if the live one has nothing else. A list must still have
// exactly the former elements, all of them observed. Released finds elements by key if the schema
// knows it, and by index if not. In a list that the schema does not observe, it finds unchanged
// elements by index.
//
// The patch of fields precedes that of [Schema.Compare] for the same live object. It removes
// fields of elements, and so moves no index.
//
// In an observed list with keys, or in a set, the same holds for an element whose key, or whose value, has left the
// spec: elements has the lists in which there are some, with the elements as their Cut. Compare takes them, because a
// list is patched as a whole. In a list without keys, the length alone decides.
func (s Schema) Released(desired, former, learned, live map[string]any) (fields, elements Differences) {
	var r releasing
	r.fields(sight{guarded(s).root, desired, former, learned, live})
	for _, difference := range r.found {
		slices.Reverse(difference.Path)
		if difference.Kind == TooLong {
			elements = append(elements, difference)
		} else {
			fields = append(fields, difference)
		}
	}
	return fields, elements
}

// Valued returns the schema without the fields that it observes as a whole, outside of lists, and that are neither desired nor learned. Their
// value is unknown. For [Schema.Released], a former value of such a field has left the spec, as for kubectl apply: it was the manifest's,
// because a learned one is known.
func (s Schema) Valued(desired, learned map[string]any) Schema {
	if root, ok := valued(s.root, desired, learned).(object); ok {
		s.root = root
	}
	return s
}

func valued(n node, desired, learned any) node {
	parent, ok := n.(object)
	if !ok {
		return n
	}
	fields := make([]field, 0, len(parent.fields))
	for _, f := range parent.fields {
		wanted, known := fieldOf(desired, f.name), fieldOf(learned, f.name)
		if _, isWhole := f.node.(leaf); !isWhole || wanted != nil || known != nil {
			fields = append(fields, field{f.name, valued(f.node, wanted, known)})
		}
	}
	return parent.with(fields)
}

// guarded returns a schema that also observes the fields that the agent must not remove.
func guarded(s Schema) Schema {
	for _, path := range append(serverOwned(), []string{"metadata", "namespace"}) {
		s = s.Unobserve(path...).Observe(path...)
	}
	return s
}

// sight is one place in each of the arguments. The node is nil if the schema does not observe the
// place.
type sight struct {
	node                           node
	desired, former, learned, live any
}

// into returns the place of a field.
func (s sight) into(name string) sight {
	return sight{
		node:    child(s.node, Step{Field: name, Index: notAnIndex}),
		desired: fieldOf(s.desired, name),
		former:  fieldOf(s.former, name),
		learned: fieldOf(s.learned, name),
		live:    fieldOf(s.live, name),
	}
}

// wanted reports whether the place, or a part of it, is observed, desired or learned.
func (s sight) wanted() bool { return s.node != nil || s.desired != nil || s.learned != nil }

// isForeign reports whether a field stands in a closed object and may not. Compare removes it, and no patch can remove it
// twice.
func (s sight) isForeign(name string, value any) bool {
	n, isObject := s.node.(object)
	return isObject && n.closed && s.desired != nil && n.isForeign(name, value)
}

// releasing walks the former projection. As in a comparison, the last step of a path is first until
// the end.
type releasing struct{ found Differences }

func (r *releasing) step(step Step, walk func()) {
	before := len(r.found)
	walk()
	for i := before; i < len(r.found); i++ {
		r.found[i].Path = append(r.found[i].Path, step)
	}
}

// fields releases the fields of an object, and reports whether it has no others.
func (r *releasing) fields(here sight) bool {
	former, _ := here.former.(map[string]any)
	live, isObject := here.live.(map[string]any)
	released := 0
	for _, name := range sortedNames(former) {
		if manifest.IsReserved(name) || here.isForeign(name, live[name]) {
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

// field releases the value of a field, and reports whether that is the whole value.
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

// rest releases a value that is no longer wanted, and reports whether it is unchanged. In a changed
// object, it releases the unchanged fields.
func (r *releasing) rest(here sight) bool {
	switch former := here.former.(type) {
	case map[string]any:
		return r.fields(here)
	case []any:
		observed, length := Elements(former)
		return len(observed) == length && asBefore(former, here.live)
	}
	return equal(here.former, here.live)
}

// parts visits the parts of a value that is wanted in part.
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

// isObject reports whether the place is an object in all arguments. An object that was learned as
// an empty one was not the manifest's, and neither were its fields.
func (s sight) isObject() bool {
	_, isList := s.node.(list)
	_, desired := s.desired.(map[string]any)
	learned, isLearned := s.learned.(map[string]any)
	return !isList && (desired || s.desired == nil) && (s.learned == nil || isLearned && len(learned) > 0)
}

// isList reports whether the place is a list in all arguments. Its elements must be desired.
func (s sight) isList() bool {
	_, isObject := s.node.(object)
	_, desired := s.desired.([]any)
	_, learned := s.learned.([]any)
	return !isObject && desired && (learned || s.learned == nil)
}

// elements visits the elements of a list that are still desired.
func (r *releasing) elements(here sight) {
	n, _ := here.node.(list) // without a schema, it has neither keys nor items
	listed := here.node != nil
	desired, live := itemsOf(here.desired), itemsOf(here.live)
	former, _ := Elements(itemsOf(here.former))
	known := n.learnedFrom(itemsOf(here.learned), desired)
	var room scratch
	pairs := n.pair(desired, live, &room)
	places := n.formerPlaces(former, desired)
	for i, element := range former {
		place, certain := i, listed && !pairs.identified
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
	if cut := n.released(desired, former, live, places); len(cut) > 0 {
		r.found = append(r.found, Difference{Kind: TooLong, Have: here.live, Cut: cut})
	}
}

// released returns the elements that have left the spec and are as before. places are those of formerPlaces. A list
// whose schema asks for more elements than are desired learns them, and so keeps all.
func (n list) released(desired, former, live []any, places []int32) (cut []int) {
	switch {
	case n.alignment == literal || len(n.items) > len(desired):
	case n.alignment == inNoOrder:
		ours, wanted := digests(former), digests(desired)
		for i, element := range live {
			if sum := digest(element); ours[sum] && !wanted[sum] {
				cut = append(cut, i)
			}
		}
	case places != nil:
		partners, _ := n.keys.lookUp(former, live)
		for i, partner := range partners {
			if places[i] == absent && partner != absent && n.keys.known(former[i]) && asBefore(former[i], live[partner]) {
				cut = append(cut, int(partner))
			}
		}
		slices.Sort(cut)
	}
	return cut
}

func digests(values []any) map[string]bool {
	sums := make(map[string]bool, len(values))
	for _, value := range values {
		sums[digest(value)] = true
	}
	return sums
}

// formerPlaces returns the present places of former elements. It returns nil if the elements have
// no unique keys.
func (n list) formerPlaces(former, desired []any) []int32 {
	if !n.hasUniqueKeys(desired) {
		return nil
	}
	places, _ := n.keys.lookUp(former, desired)
	return places
}
