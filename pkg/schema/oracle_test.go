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
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

// oracle is an observer schema in the notation of users. Its methods compute what the engine
// computes, a second time and from the specification alone. They work on plain documents,
// without a parsed tree or a patch, in as many passes as needed. Where the two differ, one of
// them has misread the specification.
//
// "1.6.5" is rule 5 of section 1.6 of the specification. "2.12" is row 12 of the table in
// section 2. "keys" is the contract of [schema.Schema.Align] for lists whose elements have
// keys.
//
// The identity is the only text in a valid schema: wherever a node is a string, its value is
// known (1.2.4).
type oracle object

// difference is a [schema.Difference] in plain values.
type difference struct {
	Kind, Path string
	Want, Have any
	Cut        []int
}

// compare returns the differences of a live object, in the order of its fields (1.6).
func (o oracle) compare(desired, live object) []difference {
	return compareValue("", o.exempting(live), desired, live)
}

// exempting returns the schema without the namespace if the object has none (1.6.6).
func (o oracle) exempting(live object) object {
	document := runtime.DeepCopyJSON(o)
	of, _ := live["metadata"].(object)
	if metadata := document["metadata"].(object); of["namespace"] == nil {
		delete(metadata, "namespace")
	}
	return document
}

// project returns the observed fields of a live object (1.5).
func (o oracle) project(desired, live object) object {
	return projectValue(object(o), desired, live).(object)
}

// observedPart returns the observed fields of a desired object (1.7.1).
func (o oracle) observedPart(desired object) object {
	return partOf(object(o), desired, false).(object)
}

// reverted returns the live object after the repair (1.7.2).
func (o oracle) reverted(desired, live object) object {
	return revertValue(o.exempting(live), desired, live).(object)
}

// lateInitialize returns the desired object with the values learned from the live one (1.4).
func (o oracle) lateInitialize(desired, live object) object {
	return learner{}.value(object(o), desired, live).(object)
}

// retain returns the new desired object with the values that the former one has learned (1.3).
func (o oracle) retain(desired, former object) object {
	return learner{former: true}.value(object(o), desired, former).(object)
}

// A null is the same as an absent value, of whatever shape (1.6.5).
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

// equal compares leaves deeply: the order of lists counts, the notation of a number does not
// (1.6.5).
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
	least, most int   // 0 is no upper limit (2.1)
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
// these are the elements beyond its end, by key those without a partner (1.7.2, keys).
func (a alignment) missing() []any {
	missing := []any{}
	for i, item := range a.want {
		if a.partner[i] < 0 {
			missing = append(missing, item)
		}
	}
	return missing
}

// isTooShort: all live elements count (1.6.8). By key, the minimum also requires that many
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

// isTooLong: a maximum of 0 is none (1.6.8).
func (a alignment) isTooLong() bool { return a.most != 0 && a.length() > a.most }

// cut returns the live elements that are too many. The list becomes as long as the desired one
// (1.7.2), but never too short. By index, elements are cut off the end. By key, unassigned
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

// compareValue returns the differences of one observed value (1.6.5).
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

// compareWhole compares leaves of any type (2.12), and values that do not have the shape of
// the schema (1.5.4). An unknown value is to be learned.
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
// object with its observed fields (1.7.1), or a list with whole elements (1.7.2).
func replacement(node, want any) any {
	if _, ok := node.(object); ok {
		return partOf(node, want, true)
	}
	return want
}

// compareObject compares the observed fields (1.6.5). An absent object counts as empty, but
// its fields are created together with it (1.7.2).
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

// compareList compares the observed elements that are there, then the length (1.6.7 to 1.6.9).
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

// compareElement compares an element. An element that only the live list has is to be learned
// (1.6.7), even if nothing in it is observed.
func compareElement(path string, node, want, have any) []difference {
	found := compareValue(path, node, want, have)
	if found == nil && want == nil && have != nil {
		return []difference{{Kind: "Unknown", Path: path, Have: have}}
	}
	return found
}

// projectValue reduces a live value to its observed part (1.5.2). A value of another shape
// than the schema is taken whole (1.5.4).
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
// elements (1.5.3). By key, an unobserved element stands for presence, and a null for absence
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

// partOf restricts a desired value to its observed part, its lists to n elements (1.7.1). With
// legal set, the value is to be created: a list that may not be absent is complete then
// (1.7.2).
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
// everything else stays (1.7.2).
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

// revertObject creates a missing object only if it is not empty (1.7.2).
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
// or completed with whole elements at the end (1.7.2).
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

// value fills in what is observed and unknown. A known value never changes (1.4.2), and null
// is unknown (1.4.4). A value of another shape is copied whole (1.4.5), or changes nothing
// (1.3.6).
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

// object is created even if nothing in it is learned (1.4.6).
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

// list fills the desired elements and appends the observed ones beyond them (1.4.3), up to the
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

// defaultSchema returns the schema of a resource without one from the user (1.2.3).
func defaultSchema(resource object) object {
	document := defaultNode(resource).(object)
	for _, name := range []string{"apiVersion", "kind"} {
		document[name] = resource[name]
	}
	metadata, given := document["metadata"].(object), resource["metadata"].(object)
	metadata["name"] = given["name"]
	if given["namespace"] == nil { // 1.2.4
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

// inspection collects the mistakes of an Application (section 3).
type inspection []string

func inspect(resources, custom []any) inspection {
	var found inspection
	for i, resource := range resources {
		found.resource(itemPath("spec.manifest", i), resource)
		if id, ok := identityOf(resource); ok && !isEmpty(id) && slices.ContainsFunc(resources[:i], sameResource(id, resource)) {
			found.add("duplicate-resource", itemPath("spec.manifest", i))
		}
	}
	for i, document := range custom {
		found.schema(itemPath("spec.observer_schema", i), document, resources, custom[:i])
	}
	return found
}

// dotted writes the paths of findings, which do not quote names.
func dotted(path, name string) string { return path + "." + name }

func (n *inspection) add(code, path string) { *n = append(*n, code+" at "+path) }

// valid reports whether there are only warnings.
func (n inspection) valid() bool {
	return !slices.ContainsFunc(n, func(finding string) bool { return !strings.HasPrefix(finding, "warning ") })
}

// resource needs an identity: the rows manifest-field-missing and not-an-object.
func (n *inspection) resource(path string, value any) {
	fields, ok := value.(object)
	if !ok {
		n.add("not-an-object", path)
		return
	}
	for _, name := range []string{"apiVersion", "kind"} {
		n.name(fields, name, path)
	}
	if metadata, ok := fields["metadata"].(object); ok {
		n.name(metadata, "name", dotted(path, "metadata"))
	} else {
		n.add("manifest-field-missing", dotted(path, "metadata"))
	}
}

func (n *inspection) name(fields object, name, path string) {
	if text, _ := fields[name].(string); text == "" {
		n.add("manifest-field-missing", dotted(path, name))
	}
}

// identityOf returns apiVersion, kind and name, if they are texts (1.1.1).
func identityOf(value any) (id [3]string, ok bool) {
	fields := fieldsOf(value)
	for i, part := range []any{fields["apiVersion"], fields["kind"], fieldsOf(fields["metadata"])["name"]} {
		if id[i], ok = part.(string); !ok {
			return id, false
		}
	}
	return id, true
}

// isEmpty: an empty text counts as missing in a manifest.
func isEmpty(id [3]string) bool { return slices.Contains(id[:], "") }

// isOf reports whether a resource or a schema has this identity.
func isOf(id [3]string) func(any) bool {
	return func(value any) bool {
		other, ok := identityOf(value)
		return ok && id == other
	}
}

// sameResource reports whether another resource has the identity and the namespace of this
// one: the row duplicate-resource.
func sameResource(id [3]string, resource any) func(any) bool {
	return func(other any) bool { return isOf(id)(other) && namespaceOf(other) == namespaceOf(resource) }
}

func namespaceOf(resource any) any { return fieldsOf(fieldsOf(resource)["metadata"])["namespace"] }

// schema inspects a schema, whether or not it belongs to a resource: the rows from
// not-an-object to not-in-manifest, and duplicate-schema.
func (n *inspection) schema(path string, value any, resources, before []any) {
	document, ok := value.(object)
	if !ok {
		n.add("not-an-object", path)
		return
	}
	n.identity(path, document)
	n.object(path, withoutIdentity(document), n.resourceOf(path, document, resources, before))
}

// resourceOf returns the resource that a schema is for, if any. The k-th schema of an identity
// belongs to its k-th resource (1.1.4).
func (n *inspection) resourceOf(path string, document object, resources, before []any) any {
	id, ok := identityOf(document)
	if !ok {
		return nil
	}
	mine, k := inOrder(resources, id), len(filter(before, isOf(id)))
	switch {
	case len(mine) == 0 || isEmpty(id):
		n.add("not-in-manifest", path)
	case k >= len(mine):
		n.add("duplicate-schema", path)
	default:
		return resources[mine[k]]
	}
	return nil
}

// inOrder returns the resources of an identity in the order in which they get their schemas
// (1.1.4).
func inOrder(resources []any, id [3]string) []int {
	var mine []int
	for i, resource := range resources {
		if isOf(id)(resource) {
			mine = append(mine, i)
		}
	}
	return mine
}

func filter(values []any, keep func(any) bool) []any {
	return slices.DeleteFunc(slices.Clone(values), func(value any) bool { return !keep(value) })
}

// identity consists of texts. A null does not name one.
func (n *inspection) identity(path string, document object) {
	n.text(path, "apiVersion", document)
	n.text(path, "kind", document)
	switch metadata := document["metadata"].(type) {
	case nil:
		n.add("metadata-missing", dotted(path, "metadata"))
	case object:
		n.text(dotted(path, "metadata"), "name", metadata)
	default:
		n.add("metadata-not-object", dotted(path, "metadata"))
	}
}

func (n *inspection) text(path, name string, fields object) {
	switch fields[name].(type) {
	case nil:
		n.add(name+"-missing", dotted(path, name))
	case string:
	default:
		n.add("identity-not-string", dotted(path, name))
	}
}

// withoutIdentity returns the observed fields, among them the namespace (2.9).
func withoutIdentity(document object) object {
	fields := maps.Clone(document)
	delete(fields, "apiVersion")
	delete(fields, "kind")
	delete(fields, "metadata")
	if metadata, ok := document["metadata"].(object); ok {
		metadata = maps.Clone(metadata)
		delete(metadata, "name")
		fields["metadata"] = metadata
	}
	return fields
}

// value may be anything but a scalar, which is a mistake of this code.
func (n *inspection) value(code, path string, node, given any) {
	switch node := node.(type) {
	case nil:
	case object:
		n.object(path, node, given)
	case []any:
		n.list(path, node, given)
	default:
		n.add(code, path)
	}
}

// object has the shape of the manifest: the rows value-not-null and shape-mismatch.
func (n *inspection) object(path string, node object, given any) {
	if !isObject(given) {
		n.add("shape-mismatch", path)
	}
	for name, child := range node {
		n.value("value-not-null", dotted(path, name), child, fieldsOf(given)[name])
	}
}

// list ends with its control dictionary: the rows element-not-null,
// control-missing and shape-mismatch.
func (n *inspection) list(path string, node []any, given any) {
	if !isList(given) {
		n.add("shape-mismatch", path)
	}
	elements, items := node, itemsOf(given)
	if control, ok := controlOf(node); ok {
		elements = node[:len(node)-1]
		n.control(path, control)
		n.limits(path, control, len(elements), len(items))
		n.keys(path, control, items)
	} else {
		n.add("control-missing", path)
	}
	for i, element := range elements {
		n.value("element-not-null", itemPath(path, i), element, at(items, i))
	}
}

// controlOf returns the last element, if it has a length key.
func controlOf(node []any) (object, bool) {
	if len(node) == 0 {
		return nil, false
	}
	control, ok := node[len(node)-1].(object)
	return control, ok && (has(control, minLength) || has(control, maxLength))
}

// control has both lengths, maybe a key, and nothing else: the rows
// control-malformed and control-extra-key.
func (n *inspection) control(path string, control object) {
	if !has(control, minLength) || !has(control, maxLength) {
		n.add("control-malformed", path)
	}
	for name := range control {
		if name != minLength && name != maxLength && name != listKey {
			n.add("control-extra-key", path)
		}
	}
}

// limits are the rows from min-not-integer to min-below-manifest.
func (n *inspection) limits(path string, control object, observed, given int) {
	least, hasLeast := n.limit("min", path, control, minLength)
	most, hasMost := n.limit("max", path, control, maxLength)
	if hasLeast && hasMost && most != 0 && most < least {
		n.add("max-below-min", path)
	}
	if hasMost && most != 0 && most < observed {
		n.add("max-below-observed", path)
	}
	if hasLeast && least < given {
		n.add("warning min-below-manifest", path)
	}
}

// limit reads an integer that is not negative.
func (n *inspection) limit(name, path string, control object, field string) (int, bool) {
	limit, ok := control[field].(int64)
	switch {
	case !has(control, field):
		return 0, false
	case !ok:
		n.add(name+"-not-integer", path)
	case limit < 0:
		n.add(name+"-negative", path)
	}
	return int(limit), ok && limit >= 0
}

// keys are named, each once. The elements of the manifest have them, and no two elements the
// same.
func (n *inspection) keys(path string, control object, items []any) {
	if !has(control, listKey) {
		return
	}
	if !isKey(control[listKey]) {
		n.add("key-malformed", path)
		return
	}
	var keys []any
	for _, item := range items {
		keys = append(keys, any(keyOf(item, keysOf(control[listKey]))))
	}
	isMissing := func(key any) bool { return len(key.([]any)) == 0 }
	isDuplicate := func(key any) bool {
		return !isMissing(key) && len(filter(keys, func(other any) bool { return equal(key, other) })) > 1
	}
	if slices.ContainsFunc(keys, isMissing) {
		n.add("key-missing", path)
	}
	if slices.ContainsFunc(keys, isDuplicate) {
		n.add("key-duplicate", path)
	}
}

// isKey accepts a name, or a list of distinct names.
func isKey(value any) bool {
	if text, ok := value.(string); ok {
		value = []any{text}
	}
	names := itemsOf(value)
	for i, name := range names {
		if text, ok := name.(string); !ok || text == "" || slices.Contains(names[:i], name) {
			return false
		}
	}
	return len(names) > 0 && len(names) <= 8
}

// The oracle passes the cases of the engine.
func TestOracleKnowsTheCases(t *testing.T) {
	differences := func(o oracle, c testCase) (string, any) {
		return "differences", describePlain(o.compare(c.object("desired"), c.object("live")))
	}
	cases := map[string]func(o oracle, c testCase) (string, any){
		"compare.yaml": differences,
		"keyed.yaml":   differences,
		"project.yaml": func(o oracle, c testCase) (string, any) {
			return "want", o.project(c.object("desired"), c.object("object"))
		},
		"observed_part.yaml": func(o oracle, c testCase) (string, any) {
			return "want", o.observedPart(c.object("desired"))
		},
		"overlay.yaml": func(o oracle, c testCase) (string, any) {
			return "want", o.reverted(c.object("desired"), c.object("live"))
		},
		"late_initialize.yaml": func(o oracle, c testCase) (string, any) {
			return "want", o.lateInitialize(c.object("desired"), c.object("live"))
		},
		"retain.yaml": func(o oracle, c testCase) (string, any) {
			return "want", o.retain(c.object("manifest"), c.object("former"))
		},
		"default.yaml": func(_ oracle, c testCase) (string, any) {
			return "want", defaultSchema(c.object("manifest"))
		},
	}
	for file, run := range cases {
		t.Run(file, func(t *testing.T) {
			forEach(t, file, func(t *testing.T, c testCase) {
				name, got := run(oracle(c.object("schema")), c)
				c.check(t, name, got)
			})
		})
	}
	t.Run("mangle.yaml", func(t *testing.T) {
		forEach(t, "mangle.yaml", func(t *testing.T, c testCase) {
			sameFindings(t, inspect(c.mangleArguments()), c.texts("findings"))
		})
	})
}

// describePlain returns differences in the notation of the cases.
func describePlain(found []difference) []object {
	described := []object{}
	for _, d := range found {
		fields := object{d.Kind: d.Path}
		if d.Want != nil {
			fields["want"] = d.Want
		}
		if d.Have != nil {
			fields["have"] = d.Have
		}
		if d.Kind == "TooLong" {
			fields["cut"] = append([]int(nil), d.Cut...)
		}
		described = append(described, fields)
	}
	return described
}

func sameFindings(t *testing.T, want, got []string) {
	t.Helper()
	want, got = slices.Sorted(slices.Values(want)), slices.Sorted(slices.Values(got))
	check.Equal(t, "findings", want, got)
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

// Mangle finds the same mistakes as the oracle, and returns schemas if none of them is an
// error.
func checkMangle(t *testing.T, choices tape) {
	t.Helper()
	resources, custom := choices.application()
	want := inspect(resources, custom)
	set, findings := schema.Mangle(resources, custom)
	sameFindings(t, want, places(findings))
	if want.valid() && !t.Failed() {
		check.Equal(t, "Mangle", mangled(resources, custom), set.Documents())
	}
	if t.Failed() {
		t.Logf("manifest %s\nschemas %s", text(t, resources), text(t, custom))
	}
}

// mangled returns the schemas of a valid Application: the user's, in their order, then the
// default ones (1.2.1, 1.2.2).
func mangled(resources, custom []any) []object {
	var documents []object
	for _, document := range custom {
		documents = append(documents, document.(object))
	}
	for i, resource := range resources {
		id, _ := identityOf(resource)
		if slices.Index(inOrder(resources, id), i) >= len(filter(custom, isOf(id))) {
			documents = append(documents, defaultSchema(resource.(object)))
		}
	}
	return documents
}

func TestMangleOracle(t *testing.T) {
	seen := map[string]bool{}
	for choices := range tapes(t, 3, 500, 3000) {
		if checkMangle(t, choices); t.Failed() {
			return
		}
		for _, finding := range inspect(choices.application()) {
			seen[strings.SplitN(strings.TrimPrefix(finding, "warning "), " ", 2)[0]] = true
		}
	}
	if len(seen) != 27 { // the rows of section 3, and three for keys
		t.Errorf("the samples have only these mistakes: %v", sorted(seen))
	}
}

func FuzzMangleOracle(f *testing.F) {
	f.Add([]byte("An object and a list of everything."))
	f.Fuzz(func(t *testing.T, choices []byte) { checkMangle(t, choices) })
}
