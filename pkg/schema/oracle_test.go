package schema_test

import (
	"fmt"
	"iter"
	"maps"
	"math/big"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

// oracle is an observer schema in the notation of users. Its methods compute what the engine
// computes, a second time and from the rules of the package documentation alone. They work on
// plain documents, without a parsed tree or a patch, in as many passes as needed. Where the two
// differ, one of them has misread a rule.
//
// "(keys)" marks the rules of [schema.Schema.Align] for lists whose elements have keys.
//
// The identity is the only text in a valid schema: wherever a node is a string, its value is
// known.
type oracle object

// difference is a [schema.Difference] in plain values.
type difference struct {
	Kind, Path string
	Want, Have any
	Cut        []int
}

// compare returns the differences of a live object, in the order of its fields.
func (o oracle) compare(desired, live object) []difference {
	return compareValue("", o.exempting(live), desired, live)
}

// exempting returns the schema without the namespace if the object has none.
func (o oracle) exempting(live object) object {
	document := runtime.DeepCopyJSON(o)
	of, _ := live["metadata"].(object)
	if metadata := document["metadata"].(object); of["namespace"] == nil {
		delete(metadata, "namespace")
	}
	return document
}

// project returns the observed fields of a live object.
func (o oracle) project(desired, live object) object {
	return projectValue(object(o), desired, live).(object)
}

// observedPart returns the observed fields of a desired object.
func (o oracle) observedPart(desired object) object {
	return partOf(object(o), desired, false).(object)
}

// reverted returns the live object after the repair.
func (o oracle) reverted(desired, live object) object {
	return revertValue(o.exempting(live), desired, live).(object)
}

// lateInitialize returns the desired object with the values learned from the live one.
func (o oracle) lateInitialize(desired, live object) object {
	return learner{}.value(object(o), desired, live).(object)
}

// retain returns the new desired object with the values that the former one has learned.
func (o oracle) retain(desired, former object) object {
	return learner{former: true}.value(object(o), desired, former).(object)
}

// A null is the same as an absent value, of whatever shape.
func isObject(value any) bool {
	_, ok := value.(object)
	return ok || value == nil
}

func isList(value any) bool {
	_, ok := value.([]any)
	return ok || value == nil
}

func fieldsOf(value any) object {
	fields, _ := value.(object)
	return fields
}

func itemsOf(value any) []any {
	items, _ := value.([]any)
	return items
}

func sorted[V any](fields map[string]V) []string { return slices.Sorted(maps.Keys(fields)) }

// at returns an element, or nil beyond the end.
func at(items []any, i int) any {
	if i < len(items) {
		return items[i]
	}
	return nil
}

// equal compares leaves deeply: the order of lists counts, the notation of a number does not.
func equal(a, b any) bool {
	switch a := a.(type) {
	case object:
		other, ok := b.(object)
		if !ok || !slices.Equal(sorted(a), sorted(other)) {
			return false
		}
		for name := range a {
			if !equal(a[name], other[name]) {
				return false
			}
		}
		return true
	case []any:
		other, ok := b.([]any)
		return ok && slices.EqualFunc(a, other, equal)
	}
	if number, ok := exact(a); ok {
		other, ok := exact(b)
		return ok && number.Cmp(other) == 0
	}
	return isScalar(b) && a == b
}

func exact(value any) (*big.Rat, bool) {
	switch value := value.(type) {
	case int64:
		return new(big.Rat).SetInt64(value), true
	case float64:
		return new(big.Rat).SetFloat64(value), true
	}
	return nil, false
}

func isScalar(value any) bool {
	switch value.(type) {
	case object, []any:
		return false
	}
	return true
}

// fieldPath and itemPath write paths as [schema.Path.String] does.
func fieldPath(path, name string) string {
	if !plainName.MatchString(name) {
		return path + "[" + strconv.Quote(name) + "]"
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func itemPath(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// alignment assigns live elements to the places of a list. Place i is element i of the schema
// and of the desired list, of which either may be shorter.
type alignment struct {
	elements    []any // of the schema, without the control dictionary
	least, most int   // 0 is no upper limit
	keys        []string
	known       bool // there is a desired list
	want, have  []any
	partner     []int // for each place the index of its live element, or -1
}

func align(node []any, want, have any) alignment {
	control := node[len(node)-1].(object)
	a := alignment{
		elements: node[:len(node)-1],
		least:    int(control[minLength].(int64)),
		most:     int(control[maxLength].(int64)),
		keys:     keysOf(control[listKey]),
		known:    want != nil,
		want:     itemsOf(want),
		have:     itemsOf(have),
	}
	a.partner = a.byIndex()
	if a.isKeyed() {
		a.partner = a.byKey()
	}
	return a
}

// keysOf returns one key or several as a list.
func keysOf(value any) []string {
	if name, ok := value.(string); ok {
		return []string{name}
	}
	var names []string
	for _, name := range itemsOf(value) {
		names = append(names, name.(string))
	}
	return names
}

func (a alignment) places() int { return max(len(a.elements), len(a.want)) }

// byIndex: place i is element i.
func (a alignment) byIndex() []int {
	partner := make([]int, a.places())
	for i := range partner {
		partner[i] = -1
		if i < len(a.have) {
			partner[i] = i
		}
	}
	return partner
}

// isKeyed: a desired element without a known key aligns the list by index (keys).
func (a alignment) isKeyed() bool {
	return a.keys != nil && !slices.ContainsFunc(a.want, a.lacksKey)
}

// lacksKey reports whether the key of an element is not known (keys).
func (a alignment) lacksKey(item any) bool { return keyOf(item, a.keys) == nil }

// keyOf returns the fields that identify an element, or nil unless it has all of them, each a
// plain value (keys).
func keyOf(item any, names []string) []any {
	key := make([]any, len(names))
	for i, name := range names {
		key[i] = fieldsOf(item)[name]
		if key[i] == nil || !isScalar(key[i]) {
			return nil
		}
	}
	return key
}

// byKey: each desired element gets the first unused live one with its key. Each place beyond
// the desired ones gets the first unused one that has a key (keys).
func (a alignment) byKey() []int {
	partner := slices.Repeat([]int{-1}, a.places())
	for i := range partner {
		for j, item := range slices.Backward(a.have) {
			if a.fits(i, item) && !slices.Contains(partner[:i], j) {
				partner[i] = j
			}
		}
	}
	return partner
}

// fits reports whether a live element may take a place.
func (a alignment) fits(place int, item any) bool {
	if place >= len(a.want) {
		return !a.lacksKey(item)
	}
	return slices.EqualFunc(keyOf(a.want[place], a.keys), keyOf(item, a.keys), equal)
}

// missing returns the desired elements that are added to a list that is too short. By index
// these are the elements beyond its end, by key those without a partner (keys).
func (a alignment) missing() []any {
	missing := []any{}
	for i, item := range a.want {
		if a.partner[i] < 0 {
			missing = append(missing, item)
		}
	}
	return missing
}

// isTooShort: all live elements count. By key, the minimum also requires that many
// desired elements with a partner. Elements with an observed field count first (keys).
func (a alignment) isTooShort() bool {
	if len(a.have) < a.least {
		return true
	}
	all, observed := []int{}, []int{}
	for place := range a.want {
		all = append(all, place)
		if place < len(a.elements) && !isEmptyObject(a.elements[place]) {
			observed = append(observed, place)
		}
	}
	return a.isKeyed() && (a.matched(all) < min(a.least, len(all)) || a.matched(observed) < min(a.least, len(observed)))
}

func (a alignment) matched(places []int) int {
	matched := 0
	for _, place := range places {
		if a.partner[place] >= 0 {
			matched++
		}
	}
	return matched
}

func isEmptyObject(node any) bool { return node != nil && isObject(node) && len(fieldsOf(node)) == 0 }

// length is that of the live list, with the elements that are added if it is too short.
func (a alignment) length() int {
	if a.isTooShort() && a.isKeyed() {
		return len(a.have) + len(a.missing())
	}
	return len(a.have)
}

// isTooLong: a maximum of 0 is none.
func (a alignment) isTooLong() bool { return a.most != 0 && a.length() > a.most }

// cut returns the live elements that are too many. The list becomes as long as the desired one,
// but never too short. By index, elements are cut off the end. By key, unassigned
// elements go first, then those at places beyond the desired elements, each from the end
// (keys).
func (a alignment) cut() []int {
	cut := []int{}
	if !a.known || !a.isTooLong() {
		return cut
	}
	keep := max(len(a.want), a.least)
	if !a.isKeyed() {
		for i := keep; i < len(a.have); i++ {
			cut = append(cut, i)
		}
		return cut
	}
	spare := a.spare()
	cut = append(cut, spare[:max(0, min(len(spare), a.length()-keep))]...)
	slices.Sort(cut)
	return cut
}

// spare returns the live elements that have no key of a desired one, in the order in which
// they may go.
func (a alignment) spare() []int {
	var untaken, taken []int
	for j := range slices.Backward(a.have) {
		switch place := slices.Index(a.partner, j); {
		case place < 0:
			untaken = append(untaken, j)
		case place >= len(a.want):
			taken = append(taken, j)
		}
	}
	return append(untaken, taken...)
}

// compareValue returns the differences of one observed value.
func compareValue(path string, node, want, have any) []difference {
	switch node := node.(type) {
	case string:
		return nil
	case object:
		if isObject(want) && isObject(have) {
			return compareObject(path, node, want, have)
		}
	case []any:
		if isList(want) && isList(have) {
			return compareList(path, node, want, have)
		}
	}
	return compareWhole(path, node, want, have)
}

// compareWhole compares leaves of any type, and values that do not have the shape of
// the schema. An unknown value is to be learned.
func compareWhole(path string, node, want, have any) []difference {
	switch {
	case want == nil && have == nil, want != nil && equal(want, have):
		return nil
	case want == nil:
		return []difference{{Kind: "Unknown", Path: path, Have: have}}
	}
	return []difference{{Kind: "Changed", Path: path, Want: replacement(node, want), Have: have}}
}

// replacement is the value that is written where the live object has another shape. It is an
// object with its observed fields, or a list with whole elements.
func replacement(node, want any) any {
	if _, ok := node.(object); ok {
		return partOf(node, want, true)
	}
	return want
}

// compareObject compares the observed fields. An absent object counts as empty, but
// its fields are created together with it.
func compareObject(path string, node object, want, have any) []difference {
	var found []difference
	for _, name := range sorted(node) {
		found = append(found, compareValue(fieldPath(path, name), node[name], fieldsOf(want)[name], fieldsOf(have)[name])...)
	}
	if have == nil && slices.ContainsFunc(found, difference.isMendable) {
		return []difference{{Kind: "Changed", Path: path, Want: partOf(node, want, true)}}
	}
	return found
}

// isMendable reports whether the difference has a value to write.
func (d difference) isMendable() bool {
	return d.Kind == "Changed" || d.Kind == "TooShort" && len(d.Want.([]any)) > 0
}

// compareList compares the observed elements that are there, then the length.
// A cut element is removed, whatever its type.
func compareList(path string, node []any, want, have any) []difference {
	a := align(node, want, have)
	var found []difference
	for i, element := range a.elements {
		if j := a.partner[i]; j >= 0 && !slices.Contains(a.cut(), j) {
			found = append(found, compareElement(itemPath(path, j), element, at(a.want, i), a.have[j])...)
		}
	}
	if a.isTooShort() {
		found = append(found, difference{Kind: "TooShort", Path: path, Want: a.missing(), Have: have})
	}
	if a.isTooLong() {
		found = append(found, difference{Kind: "TooLong", Path: path, Have: have, Cut: a.cut()})
	}
	return found
}

// compareElement compares an element. An element that only the live list has is to be learned,
// even if nothing in it is observed.
func compareElement(path string, node, want, have any) []difference {
	found := compareValue(path, node, want, have)
	if found == nil && want == nil && have != nil {
		return []difference{{Kind: "Unknown", Path: path, Have: have}}
	}
	return found
}

// projectValue reduces a live value to its observed part. A value of another shape
// than the schema is taken whole.
func projectValue(node, want, have any) any {
	if have == nil {
		return nil
	}
	switch node := node.(type) {
	case string:
		return node
	case object:
		if isObject(have) {
			return projectObject(node, fieldsOf(want), fieldsOf(have))
		}
	case []any:
		if isList(have) {
			return projectList(node, want, have)
		}
	}
	return have
}

func projectObject(node, want, have object) object {
	fields := object{}
	for name, child := range node {
		if value := projectValue(child, want[name], have[name]); value != nil {
			fields[name] = value
		}
	}
	return fields
}

// projectList returns the observed elements in their places and the length, which counts all
// elements. By key, an unobserved element stands for presence, and a null for absence
// (keys).
func projectList(node []any, want, have any) []any {
	if !isList(want) {
		want = nil
	}
	a := align(node, want, have)
	items := []any{}
	for i, j := range a.partner {
		switch {
		case i < len(a.elements) && j >= 0:
			items = append(items, projectValue(a.elements[i], at(a.want, i), a.have[j]))
		case a.isKeyed() && j >= 0:
			items = append(items, object{})
		case a.isKeyed():
			items = append(items, nil)
		}
	}
	for a.isKeyed() && len(items) > 0 && items[len(items)-1] == nil {
		items = items[:len(items)-1]
	}
	return append(items, object{currentLength: int64(len(a.have))})
}

// partOf restricts a desired value to its observed part, its lists to n elements. With
// legal set, the value is to be created: a list that may not be absent is complete then.
func partOf(node, want any, legal bool) any {
	switch node := node.(type) {
	case string:
		return node
	case object:
		if want, ok := want.(object); ok {
			return partOfObject(node, want, legal)
		}
	case []any:
		if want, ok := want.([]any); ok {
			return partOfList(align(node, want, nil), legal)
		}
	}
	return want
}

func partOfObject(node, want object, legal bool) object {
	fields := object{}
	for name, child := range node {
		if value := partOf(child, want[name], legal); value != nil {
			fields[name] = value
		}
	}
	return fields
}

func partOfList(a alignment, legal bool) []any {
	length := min(len(a.elements), len(a.want))
	if legal && a.least > 0 {
		return a.want
	}
	items := []any{}
	for i := range length {
		item := partOf(a.elements[i], a.want[i], legal)
		if legal {
			item = a.withKey(item, a.want[i])
		}
		items = append(items, item)
	}
	return items
}

// revertValue returns the live value after the repair: an observed value that is known is set,
// everything else stays.
func revertValue(node, want, have any) any {
	switch node := node.(type) {
	case string:
		return have
	case object:
		if isObject(want) && isObject(have) {
			return revertObject(node, want, have)
		}
	case []any:
		if isList(want) && isList(have) {
			return revertList(node, want, have)
		}
	}
	if want == nil || equal(want, have) {
		return have
	}
	return replacement(node, want)
}

// revertObject creates a missing object only if it is not empty.
func revertObject(node object, want, have any) any {
	if have == nil {
		if !slices.ContainsFunc(compareObject("", node, want, nil), difference.isMendable) {
			return nil
		}
		return partOf(node, want, true)
	}
	fields := maps.Clone(fieldsOf(have))
	for name, child := range node {
		if value := revertValue(child, fieldsOf(want)[name], fields[name]); value != nil {
			fields[name] = value
		}
	}
	return fields
}

// revertList corrects the observed elements that are there. A list of illegal length is cut,
// or completed with whole elements at the end.
func revertList(node []any, want, have any) any {
	a := align(node, want, have)
	items := slices.Clone(a.have)
	for i, element := range a.elements {
		if j := a.partner[i]; j >= 0 {
			items[j] = revertValue(element, at(a.want, i), items[j])
		}
	}
	for _, j := range slices.Backward(a.cut()) {
		items = slices.Delete(items, j, j+1)
	}
	if a.isTooShort() {
		items = append(items, a.missing()...)
	}
	if have == nil && len(items) == 0 {
		return nil
	}
	return items
}

// learner completes a desired value with values from a live object or from the former desired
// one.
type learner struct{ former bool }

// value fills in what is observed and unknown. A known value never changes, and null
// is unknown. A value of another shape is copied whole, or changes nothing.
func (l learner) value(node, want, have any) any {
	if have == nil {
		return want
	}
	switch node := node.(type) {
	case string:
		return want
	case object:
		if isObject(want) && isObject(have) {
			return l.object(node, fieldsOf(want), fieldsOf(have))
		}
	case []any:
		if isList(want) && isList(have) {
			return l.list(node, want, have)
		}
	}
	if want == nil {
		return have
	}
	return want
}

// object is created even if nothing in it is learned.
func (l learner) object(node, want, have object) object {
	fields := object{}
	maps.Copy(fields, want)
	for name, child := range node {
		if value := l.value(child, want[name], have[name]); value != nil {
			fields[name] = value
		}
	}
	return fields
}

// list fills the desired elements and appends the observed ones beyond them, up to the
// first absent one.
func (l learner) list(node []any, want, have any) []any {
	a := align(node, want, have)
	if l.former && slices.ContainsFunc(a.have, a.lacksKey) { // keys
		a.partner = a.byIndex()
	}
	items := append([]any{}, a.want...)
	for i, element := range a.elements {
		j := a.partner[i]
		switch {
		case i < len(a.want) && j >= 0:
			items[i] = l.value(element, items[i], a.have[j])
		case i >= len(a.want) && (j < 0 || a.have[j] == nil):
			return items
		case i >= len(a.want):
			items = append(items, a.withKey(l.value(element, nil, a.have[j]), a.have[j]))
		}
	}
	return items
}

// withKey adds the key to the observed part of an element. Without its key, the element would
// not be found again (keys).
func (a alignment) withKey(observed, item any) any {
	fields, ok := observed.(object)
	for _, name := range a.keys {
		if value := fieldsOf(item)[name]; ok && value != nil {
			fields[name] = value
		}
	}
	return observed
}

// defaultSchema returns the schema of a resource without one from the user.
func defaultSchema(resource object) object {
	document := defaultNode(resource).(object)
	for _, name := range []string{"apiVersion", "kind"} {
		document[name] = resource[name]
	}
	metadata, given := document["metadata"].(object), resource["metadata"].(object)
	metadata["name"] = given["name"]
	if given["namespace"] == nil {
		delete(metadata, "namespace")
	}
	return document
}

func defaultNode(value any) any {
	switch value := value.(type) {
	case object:
		fields := object{}
		for name, field := range value {
			fields[name] = defaultNode(field)
		}
		return fields
	case []any:
		items := []any{}
		for _, item := range value {
			items = append(items, defaultNode(item))
		}
		length := int64(len(value))
		return append(items, object{minLength: length, maxLength: length})
	}
	return nil
}

// The engine and the oracle agree.
func checkOracle(t *testing.T, s sample) {
	t.Helper()
	o := oracle(s.document)
	for _, desired := range append(s.desired(), s.second) {
		compared := plainly(s.schema.Compare(desired, s.live))
		check.Equal(t, "Compare", o.compare(desired, s.live), compared)
		check.Equal(t, "Project", o.project(desired, s.live), s.schema.Project(desired, s.live))
		check.Equal(t, "Overlay", o.reverted(desired, s.live), s.schema.Overlay(desired, s.live))
		check.Equal(t, "ObservedPart", o.observedPart(desired), s.schema.ObservedPart(desired))
		check.Equal(t, "LateInitialize", o.lateInitialize(desired, s.live), s.schema.LateInitialize(desired, s.live))
		check.Equal(t, "Retain", o.retain(s.second, desired), s.schema.Retain(s.second, desired))
	}
	standard, err := schema.Default(s.first)
	check.Must(t, err)
	check.Equal(t, "Default", defaultSchema(s.first), standard.Document())
}

// plainly returns the engine's differences as the oracle's type.
func plainly(found schema.Differences) []difference {
	var all []difference
	for _, d := range found {
		same := difference{Kind: string(d.Kind), Path: d.Path.String(), Want: d.Want, Have: d.Have}
		if d.Kind == schema.TooShort {
			same.Want = append([]any{}, itemsOf(d.Want)...)
		}
		if d.Kind == schema.TooLong {
			same.Cut = append([]int{}, d.Cut...)
		}
		all = append(all, same)
	}
	return all
}

func TestOracle(t *testing.T) {
	samples := 3000
	if testing.Short() {
		samples = 1000
	}
	seen := map[string]bool{}
	for choices := range tapes(t, 2, 500, samples) {
		if law(checkOracle).check(t, choices); t.Failed() {
			return
		}
		s := choices.sample()
		for _, d := range oracle(s.document).compare(s.first, s.live) {
			seen[fmt.Sprint(d.Kind, d.isMendable() || len(d.Cut) > 0)] = true
		}
	}
	if len(seen) != 6 { // TooShort and TooLong may be beyond repair
		t.Errorf("the samples have only these differences: %v", sorted(seen))
	}
}

// tapes returns rows of choices. Equal arguments return equal rows.
func tapes(t *testing.T, seed byte, length, count int) iter.Seq[tape] {
	t.Helper()
	return func(yield func(tape) bool) {
		random := rand.NewChaCha8([32]byte{seed})
		for range count {
			choices := make(tape, length)
			_, _ = random.Read(choices) // it never fails
			if !yield(choices) {
				return
			}
		}
	}
}

func FuzzOracle(f *testing.F) { fuzz(f, checkOracle) }
