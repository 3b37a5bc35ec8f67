package schema_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json" // decodes integers as int64

	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

// law is a property that holds for every schema and all objects, of whatever shape.
type law func(t *testing.T, s sample)

// laws returns all laws, by the names of their fuzz targets.
func laws() map[string]law {
	return map[string]law{
		"FuzzCompareSelf": checkSelf,
		"FuzzOverlay":     checkOverlay,
		"FuzzPatch":       checkPatch,
		"FuzzProject":     checkProjection,
		"FuzzLearn":       checkLearning,
		"FuzzRetain":      checkLearned,
		"FuzzAccept":      checkForms,
		"FuzzDocument":    checkDocument,
		"FuzzResults":     checkIndependent,
		"FuzzReleased":    checkReleased,
		"FuzzKeep":        checkKeep,
		"FuzzShare":       checkShare,
		"FuzzAligned":     checkAligned,
	}
}

func FuzzCompareSelf(f *testing.F) { fuzz(f, checkSelf) }
func FuzzOverlay(f *testing.F)     { fuzz(f, checkOverlay) }
func FuzzPatch(f *testing.F)       { fuzz(f, checkPatch) }
func FuzzProject(f *testing.F)     { fuzz(f, checkProjection) }
func FuzzLearn(f *testing.F)       { fuzz(f, checkLearning) }
func FuzzRetain(f *testing.F)      { fuzz(f, checkLearned) }
func FuzzAccept(f *testing.F)      { fuzz(f, checkForms) }
func FuzzDocument(f *testing.F)    { fuzz(f, checkDocument) }
func FuzzResults(f *testing.F)     { fuzz(f, checkIndependent) }
func FuzzReleased(f *testing.F)    { fuzz(f, checkReleased) }
func FuzzKeep(f *testing.F)        { fuzz(f, checkKeep) }
func FuzzShare(f *testing.F)       { fuzz(f, checkShare) }

func fuzz(f *testing.F, l law) {
	f.Helper()
	f.Add([]byte{})
	f.Add([]byte("An object and a list of everything."))
	f.Add([]byte{3, 1, 2, 1, 1, 2, 3, 2, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 2, 2, 2, 5, 5, 5, 9, 9, 9})
	f.Fuzz(func(t *testing.T, choices []byte) { l.check(t, choices) })
}

// check tries the law on the sample that the choices produce, and checks that the law leaves
// the sample unchanged.
func (l law) check(t *testing.T, choices tape) {
	t.Helper()
	s := choices.sample()
	s.schema = parse(t, s.document)
	before := s.objects()
	l(t, s)
	check.Equal(t, "the arguments afterwards", before, s.objects())
	if t.Failed() {
		t.Logf("schema %s\nfirst %s\nlive %s\nsecond %s", text(t, s.document), text(t, s.first), text(t, s.live), text(t, s.second))
	}
}

func TestLaws(t *testing.T) {
	samples := 500
	if testing.Short() {
		samples = 150
	}
	for name, l := range laws() {
		t.Run(name, func(t *testing.T) {
			for choices := range tapes(t, 1, 400, samples) {
				if l.check(t, choices); t.Failed() {
					return
				}
			}
		})
	}
}

// desired returns possible desired objects: the manifest, and the manifest with values learned
// from the live object.
func (s sample) desired() []object {
	return []object{s.first, s.schema.LateInitialize(s.first, s.live)}
}

// An object differs from itself only where it violates a length of its own.
func checkSelf(t *testing.T, s sample) {
	t.Helper()
	for _, desired := range append(s.desired(), s.live) {
		found := s.schema.Compare(desired, desired)
		for _, difference := range found {
			if difference.Kind != schema.TooShort && difference.Kind != schema.TooLong {
				t.Errorf("Compare(x, x) finds %v", difference)
			}
		}
		check.Equal(t, "Compare(x, x) finds nothing", satisfies(s.document, desired), len(found) == 0)
		check.Empty(t, "Patch(x, x)", s.schema.Patch(desired, desired))
	}
}

// After an overlay no repairable difference remains, and unobserved fields are unchanged.
func checkOverlay(t *testing.T, s sample) {
	t.Helper()
	for _, desired := range s.desired() {
		overlaid := s.schema.Overlay(desired, s.live)
		for _, difference := range s.schema.Compare(desired, overlaid).Drift() {
			want, _ := difference.Want.([]any)
			impossible := difference.Kind == schema.TooShort && len(want) == 0 ||
				difference.Kind == schema.TooLong && len(difference.Cut) == 0
			if !impossible {
				t.Errorf("after Overlay: %v", difference)
			}
		}
		check.Empty(t, "patch after Overlay", s.schema.Patch(desired, overlaid))
		checkUntouched(t, s.document, s.live, overlaid)
	}
}

// A server that applies the patch gets the overlay.
func checkPatch(t *testing.T, s sample) {
	t.Helper()
	for _, desired := range s.desired() {
		operations := s.schema.Patch(desired, s.live)
		want, got := s.schema.Overlay(desired, s.live), patched(t, s.live, operations)
		check.Equal(t, fmt.Sprintf("what Patch %v leads to", operations), normal(t, want), normal(t, got))
	}
}

// patched returns the object after an implementation of RFC 6902 has applied the patch.
func patched(t *testing.T, live object, operations schema.Patch) object {
	t.Helper()
	patch, err := jsonpatch.DecodePatch([]byte(text(t, append(schema.Patch{}, operations...))))
	check.Must(t, err)
	result, err := patch.Apply([]byte(text(t, live)))
	if err != nil {
		t.Fatalf("apply %v: %v", operations, err)
	}
	var got object
	check.Must(t, utiljson.Unmarshal(result, &got))
	return got
}

// A projection contains all that a comparison needs. Projecting twice equals projecting once.
func checkProjection(t *testing.T, s sample) {
	t.Helper()
	for _, desired := range s.desired() {
		checkProjectionOf(t, s, desired)
		once := s.schema.ObservedPart(desired)
		check.Equal(t, "ObservedPart, twice", once, s.schema.ObservedPart(once))
	}
	noisy := runtime.DeepCopyJSON(s.live)
	noisy["not observed"] = "noise"
	once := s.schema.Project(s.first, s.live)
	check.Equal(t, "Project, with what is not observed", once, s.schema.Project(s.first, noisy))
	if hasKeys(s.document) {
		return // without its key an element is not found again
	}
	bare, _ := withoutLengths(once).(object)
	again := withoutLengths(s.schema.Project(s.first, runtime.DeepCopyJSON(bare)))
	check.Equal(t, "Project, twice", any(bare), again)
}

func checkProjectionOf(t *testing.T, s sample, desired object) {
	t.Helper()
	type place struct{ Path, Kind, Want string }
	places := func(found schema.Differences) []place {
		var all []place
		for _, difference := range found {
			path := difference.Path.String()
			if hasKeys(s.document) { // the elements of a projection are in the places of the desired ones
				path = indices.ReplaceAllString(path, "[]")
			}
			all = append(all, place{path, string(difference.Kind), text(t, difference.Want)})
		}
		return all
	}
	direct := places(s.schema.Compare(desired, s.live))
	projected := places(s.schema.CompareProjection(desired, s.schema.Project(desired, s.live)))
	check.Equal(t, "CompareProjection", direct, projected)
}

var indices = regexp.MustCompile(`\[\d+\]`)

// withoutLengths removes the length dictionaries with which a projection ends its lists.
func withoutLengths(value any) any {
	switch value := value.(type) {
	case object:
		fields := object{}
		for name, field := range value {
			fields[name] = withoutLengths(field)
		}
		return fields
	case []any:
		items := []any{}
		for _, item := range value {
			if fields, ok := item.(object); !ok || !has(fields, currentLength) {
				items = append(items, withoutLengths(item))
			}
		}
		return items
	}
	return value
}

// Learning adds unknown values and changes no known ones.
func checkLearning(t *testing.T, s sample) {
	t.Helper()
	for _, known := range []object{s.schema.LateInitialize(s.first, s.live), s.schema.Retain(s.first, s.second)} {
		checkKept(t, s.first, known)
	}
	if lacksKey(s.document, s.first) {
		return // its lists are aligned by index now, and by key after the key is learned
	}
	known := s.schema.LateInitialize(s.first, s.live)
	check.Equal(t, "LateInitialize, twice", known, s.schema.LateInitialize(known, s.live))
	if unknown := s.schema.Compare(known, s.live).Unknown(); len(unknown) > 0 && !hasGap(s.live) {
		t.Errorf("after LateInitialize: %v", unknown)
	}
}

// lacksKey reports whether a list with keys has an element without its key: a manifest with
// such elements is refused.
func lacksKey(node, value any) bool {
	switch node := node.(type) {
	case object:
		fields, _ := value.(object)
		for name, child := range node {
			if lacksKey(child, fields[name]) {
				return true
			}
		}
	case []any:
		items, _ := value.([]any)
		keys := keysOf(node[len(node)-1].(object)[listKey])
		for i, item := range items {
			if len(keys) > 0 && keyOf(item, keys) == nil || i < len(node)-1 && lacksKey(node[i], item) {
				return true
			}
		}
	}
	return false
}

// checkKept checks that every value is still there.
func checkKept(t *testing.T, before, after any) {
	t.Helper()
	switch before := before.(type) {
	case nil:
	case object:
		fields, _ := after.(object)
		for name, value := range before {
			checkKept(t, value, fields[name])
		}
	case []any:
		items, _ := after.([]any)
		if len(items) < len(before) {
			t.Errorf("%v was known, and is %v", before, after)
			return
		}
		for i, item := range before {
			checkKept(t, item, items[i])
		}
	default:
		if before != after {
			t.Errorf("%v was known, and is %v", before, after)
		}
	}
}

// Accepted values do not differ. Accepting them causes no new difference, and hides no other.
func checkForms(t *testing.T, s sample) {
	t.Helper()
	written, _ := rewrite(s.first).(object)
	accepted := s.schema.Accept(s.schema.Forms(s.first, written))
	if drift := accepted.Compare(s.first, written).Drift(); len(drift) > 0 && fits(s.document, s.first) && !hasKeys(s.document) && satisfies(s.document, s.first) {
		t.Errorf("what was accepted differs: %v", drift)
	}
	check.Equal(t, "the document afterwards", s.schema.Document(), accepted.Document())
	before, after := s.schema.Compare(s.first, s.live), accepted.Compare(s.first, s.live)
	for _, difference := range after {
		if !slices.ContainsFunc(before, func(former schema.Difference) bool { return isWithin(difference.Path, former.Path) }) {
			t.Errorf("accepting brings %v, before %v", difference, before)
		}
	}
	itself := len(s.schema.Compare(s.first, s.first))
	check.Equal(t, "differences of the desired object from itself", itself, len(accepted.Compare(s.first, s.first)))
}

// isWithin reports whether a path equals the other or leads further.
func isWithin(path, other schema.Path) bool {
	return len(path) >= len(other) && slices.Equal(path[:len(other)], other)
}

// rewrite returns a value in a form that a server could write.
func rewrite(value any) any {
	switch value := value.(type) {
	case object:
		fields := object{}
		for name, field := range value {
			if field != false && field != "" {
				fields[name] = rewrite(field)
			}
		}
		return fields
	case []any:
		items := make([]any, 0, len(value)+1)
		for _, item := range value {
			items = append(items, rewrite(item))
		}
		if len(items) == 2 {
			items = append(items, "added")
		}
		return items
	case int64:
		return float64(value) + 0.5
	}
	return value
}

// fits reports whether a value has the shape of the schema.
func fits(node, value any) bool {
	switch node := node.(type) {
	case object:
		fields, ok := value.(object)
		for name, child := range node {
			if name != "apiVersion" && name != "kind" && name != "metadata" && !fits(child, fields[name]) {
				return false
			}
		}
		return ok || value == nil
	case []any:
		items, ok := value.([]any)
		for i, child := range node[:len(node)-1] {
			if i < len(items) && !fits(child, items[i]) {
				return false
			}
		}
		return ok || value == nil
	}
	return true
}

// A printed schema parses to the same schema.
func checkDocument(t *testing.T, s sample) {
	t.Helper()
	document := s.schema.Document()
	same(t, s.document, document)
	again := parse(t, document)
	same(t, document, again.Document())
	same(t, describe(s.schema.Compare(s.first, s.live)), describe(again.Compare(s.first, s.live)))
	set, findings := schema.Mangle([]any{s.first}, nil)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	if again, findings := schema.Mangle([]any{s.first}, []any{set.Documents()[0]}); len(findings) > 0 {
		t.Errorf("a default schema is refused: %v", findings)
	} else {
		same(t, set.Documents(), again.Documents())
	}
}

// The desired state is a function of the manifest and of the learned values, also after the
// manifest has changed.
func checkLearned(t *testing.T, s sample) {
	t.Helper()
	known := s.schema.LateInitialize(s.first, s.live)
	learned := s.schema.Learned(known, s.first)
	check.Equal(t, "Retain(manifest, Learned(desired, manifest))", known, s.schema.Retain(s.first, learned))
	check.Equal(t, "Retain(manifest, LearnedInPlace(desired, manifest))", known, s.schema.Retain(s.first, s.schema.LearnedInPlace(known, s.first)))
	changed := s.schema.LateInitialize(s.schema.Retain(s.second, learned), s.live)
	check.Equal(t, "after a change of the manifest", changed, s.schema.Retain(s.second, s.schema.Learned(changed, s.second)))
}

// A change to a result changes no argument. (What Compare returns is shared, as its comment
// says.)
func checkIndependent(t *testing.T, s sample) {
	t.Helper()
	before := s.objects()
	forgotten, _ := s.schema.Forget(s.live, s.first, s.second, "spec", "a")
	results := map[string]object{
		"Project":        s.schema.Project(s.first, s.live),
		"ObservedPart":   s.schema.ObservedPart(s.first),
		"Overlay":        s.schema.Overlay(s.first, s.live),
		"LateInitialize": s.schema.LateInitialize(s.first, s.live),
		"Learned":        s.schema.Learned(s.live, s.first),
		"Forget":         forgotten,
	}
	for name, result := range results {
		scribble(result)
		check.Equal(t, "the arguments after a change of the result of "+name, before, s.objects())
	}
}

func scribble(value any) {
	switch value := value.(type) {
	case object:
		for name, field := range value {
			scribble(field)
			value[name] = "scribbled"
		}
	case []any:
		for i, item := range value {
			scribble(item)
			value[i] = "scribbled"
		}
	}
}

// checkUntouched compares unobserved fields that both objects have.
func checkUntouched(t *testing.T, node, before, after any) {
	t.Helper()
	switch node := node.(type) {
	case object:
		was, wasOK := before.(object)
		is, isOK := after.(object)
		if !wasOK || !isOK {
			return
		}
		for name := range was {
			if child, observed := node[name]; observed {
				checkUntouched(t, child, was[name], is[name])
			} else if diff := cmp.Diff(was[name], is[name]); diff != "" {
				t.Errorf("%s is not observed: -before +after\n%s", name, diff)
			}
		}
		for name := range is {
			if _, had := was[name]; !had && !has(node, name) {
				t.Errorf("%s is not observed, and was added", name)
			}
		}
	case []any:
		was, _ := before.([]any)
		is, _ := after.([]any)
		if hasKeys(node) {
			return // the oracle knows where each element is now
		}
		for i := range min(len(was), len(is)) {
			if i < len(node)-1 {
				checkUntouched(t, node[i], was[i], is[i])
			} else if diff := cmp.Diff(was[i], is[i]); diff != "" {
				t.Errorf("element %d is not observed: -before +after\n%s", i, diff)
			}
		}
	}
}

// satisfies reports whether the lists of a value have the lengths that the schema allows. It
// reads the document, not the parsed schema.
func satisfies(node, value any) bool {
	switch node := node.(type) {
	case object:
		fields, ok := value.(object)
		if value != nil && !ok {
			return true
		}
		for name, child := range node {
			if !satisfies(child, fields[name]) {
				return false
			}
		}
	case []any:
		items, ok := value.([]any)
		if value != nil && !ok {
			return true
		}
		control := node[len(node)-1].(object)
		least, most := control[minLength].(int64), control[maxLength].(int64)
		length := int64(len(items))
		if length < least || most > 0 && length > most {
			return false
		}
		for i, child := range node[:len(node)-1] {
			if i < len(items) && !satisfies(child, items[i]) {
				return false
			}
		}
	}
	return true
}

// hasGap reports whether a list has a null: what follows it cannot be learned.
func hasGap(value any) bool {
	switch value := value.(type) {
	case object:
		for _, field := range value {
			if hasGap(field) {
				return true
			}
		}
	case []any:
		for _, item := range value {
			if item == nil || hasGap(item) {
				return true
			}
		}
	}
	return false
}

// hasKeys reports whether a list in the schema is aligned by key.
func hasKeys(node any) bool {
	switch node := node.(type) {
	case object:
		for name, child := range node {
			if name == listKey || hasKeys(child) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(node, hasKeys)
	}
	return false
}

func has(fields object, name string) bool {
	_, ok := fields[name]
	return ok
}

func text(t *testing.T, value any) string {
	t.Helper()
	encoded, err := json.Marshal(value)
	check.Must(t, err)
	return string(encoded)
}

// normal returns a value as decoded from its JSON, with all numbers as floats.
func normal(t *testing.T, value any) any {
	t.Helper()
	var decoded any
	check.Must(t, json.Unmarshal([]byte(text(t, value)), &decoded))
	return decoded
}

// A schema that shares its parts with others is equal to the original, in each of their
// refinements.
func checkShare(t *testing.T, s sample) {
	t.Helper()
	var pool schema.Pool
	all := []schema.Schema{s.schema, s.schema.Accept(s.schema.Forms(s.first, s.second)), s.schema.ByValue(), s.schema.Align(keyed("name"))}
	all = append(all, s.schema.Observe("metadata", "c"), s.schema.Observe("a"), s.schema.Unobserve("a"))
	for range 2 { // the second time the pool has all parts
		for i, each := range all {
			check.Equal(t, fmt.Sprintf("number %d, shared", i), fmt.Sprintf("%+v", each), fmt.Sprintf("%+v", pool.Share(each)))
		}
	}
}
