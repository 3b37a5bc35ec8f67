package schema

import (
	"strconv"
	"strings"
)

// Key is a field by which the elements of a list are told apart: a merge key in
// the words of the API.
type Key struct {
	Name string
	// Default is the value of an element that does not say it ("protocol: TCP").
	Default any
}

type keys []Key

// known tells if an element has its key: each of the fields, but for those with
// a default, and none that is more than a plain value. With a part of its key
// an element were another one as soon as the server has filled in the rest.
func (k keys) known(element any) bool {
	fields, ok := element.(map[string]any)
	for _, key := range k {
		switch key.of(fields).(type) {
		case nil, map[string]any, []any:
			return false
		}
	}
	return ok && len(k) > 0
}

func (k keys) allKnown(elements []any) bool {
	for _, element := range elements {
		if !k.known(element) {
			return false
		}
	}
	return true
}

// names gives "name" or "containerPort, protocol".
func (k keys) names() string {
	names := make([]string, 0, len(k))
	for _, key := range k {
		names = append(names, key.Name)
	}
	return strings.Join(names, ", ")
}

// distinct tells if no two elements have the same key.
func (k keys) distinct(elements []any) bool {
	seen := make(map[string]bool, len(elements))
	for _, element := range elements {
		if !k.known(element) {
			continue
		}
		key := k.text(element)
		if seen[key] {
			return false
		}
		seen[key] = true
	}
	return true
}

// same tells if two elements have the same key.
func (k keys) same(a, b any) bool {
	if !k.known(b) {
		return false
	}
	left, _ := a.(map[string]any)
	right, _ := b.(map[string]any)
	for _, key := range k {
		if !equal(key.of(left), key.of(right)) {
			return false
		}
	}
	return true
}

// of gives the value of the field. A zero is none to a server that has a default.
func (k Key) of(element map[string]any) any {
	value := element[k.Name]
	if k.Default != nil && (value == nil || value == "" || equal(value, int64(0))) {
		return k.Default
	}
	return value
}

// text is the same for two elements with the same key, and only for those.
func (k keys) text(element any) string {
	fields, _ := element.(map[string]any)
	var b strings.Builder
	for _, key := range k {
		b.WriteString(scalarText(key.of(fields)))
		b.WriteByte(',')
	}
	return b.String()
}

func scalarText(value any) string {
	switch value := value.(type) {
	case string:
		return strconv.Quote(value)
	case bool:
		return strconv.FormatBool(value)
	case int64:
		return strconv.FormatInt(value, 10)
	case float64:
		if i := int64(value); equalNumbers(i, value) {
			return strconv.FormatInt(i, 10)
		}
		return strconv.FormatFloat(value, 'g', -1, 64)
	}
	return ""
}

// with gives a value that was taken from an element the fields by which that is
// found again.
func (k keys) with(value, element any) any {
	fields, ok := value.(map[string]any)
	from, _ := element.(map[string]any)
	if !ok {
		return value
	}
	for _, key := range k {
		if plain := from[key.Name]; plain != nil && fields[key.Name] == nil {
			fields[key.Name] = clone(plain)
		}
	}
	return fields
}

// absent is the partner of a place that has none.
const absent = -1

// pairing says which element of a list each of its places is about. The places
// are those of the desired elements and, beyond them, of the schema.
type pairing struct {
	places int
	// partners of the places; nil: each place has the element of its own index.
	partners []int32
	// elements is how many there are.
	elements int
	// byKey: the list was looked at by its keys.
	byKey bool
	// projected are the elements of a projection by key: a null is none.
	projected []any
}

// partner gives the index of a place's element, or absent.
func (p pairing) partner(place int) int {
	switch {
	case p.projected != nil && place < len(p.projected) && p.projected[place] == nil:
		return absent
	case p.partners != nil && place < len(p.partners):
		return int(p.partners[place])
	case p.partners == nil && place < p.elements:
		return place
	}
	return absent
}

// project gives the pairing of a projected list, whose elements have their places.
func (n list) project(wanted, elements []any) pairing {
	p := pairing{places: n.places(wanted), elements: len(elements), byKey: n.byKey(wanted)}
	if p.byKey {
		p.projected = elements
	}
	return p
}

// usual is the length up to which a list is searched, without memory of its own.
const usual = 32

// scratch is the memory for the pairing of a list of usual length. It lies on
// the stack, so that no list without drift costs an allocation.
type scratch struct {
	partners [usual]int32
	taken    [usual]bool
}

func (n list) places(wanted []any) int { return max(len(n.items), len(wanted)) }

// byKey tells if the desired elements can be looked up by key.
func (n list) byKey(wanted []any) bool { return len(n.keys) > 0 && n.keys.allKnown(wanted) }

// pair finds the element of each place. By key, each desired element gets the
// first one with its key that is not taken yet; then each further place of the
// schema takes the next one that is left and has a key: without one, what was
// learned from it would find nothing again.
func (n list) pair(wanted, elements []any, room *scratch) pairing {
	p := pairing{places: n.places(wanted), elements: len(elements), byKey: n.byKey(wanted)}
	if !p.byKey || n.keys.inOrder(p.places, wanted, elements) {
		return p
	}
	taken := room.taken[:]
	p.partners = room.partners[:0]
	if len(elements) > usual {
		taken = make([]bool, len(elements))
		p.partners = n.keys.lookUp(make([]int32, 0, len(wanted)), wanted, elements, taken)
	} else {
		p.partners = n.keys.search(p.partners, wanted, elements, taken)
	}
	return n.keys.takeRest(p, elements, taken)
}

// inOrder tells if each place has the element of its own index, as it mostly is.
func (k keys) inOrder(places int, wanted, elements []any) bool {
	for i := range min(places, len(elements)) {
		if i < len(wanted) && !k.same(wanted[i], elements[i]) || !k.known(elements[i]) {
			return false
		}
	}
	return true
}

func (k keys) search(partners []int32, wanted, elements []any, taken []bool) []int32 {
	for _, desired := range wanted {
		partner := int32(absent)
		for i, element := range elements {
			if !taken[i] && k.same(desired, element) {
				taken[i], partner = true, int32(i)
				break
			}
		}
		partners = append(partners, partner)
	}
	return partners
}

// lookUp does what search does, in time proportional to the lists.
func (k keys) lookUp(partners []int32, wanted, elements []any, taken []bool) []int32 {
	left := make(map[string][]int32, len(elements))
	for i, element := range elements {
		if k.known(element) {
			key := k.text(element)
			left[key] = append(left[key], int32(i))
		}
	}
	for _, desired := range wanted {
		partner := int32(absent)
		key := k.text(desired)
		if found := left[key]; len(found) > 0 {
			partner, left[key] = found[0], found[1:]
			taken[partner] = true
		}
		partners = append(partners, partner)
	}
	return partners
}

// takeRest gives each place beyond the desired elements the next one that is left.
func (k keys) takeRest(p pairing, elements []any, taken []bool) pairing {
	for i, element := range elements {
		if len(p.partners) >= p.places {
			break
		}
		if !taken[i] && k.known(element) {
			p.partners = append(p.partners, int32(i))
		}
	}
	return p
}
