package schema_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

// Only the live object determines what is cut. A stored projection may lack the lengths of its
// lists: it is as long as the elements that it has.
func TestCompareProjectionOfWhatWasStored(t *testing.T) {
	desired := complete(decode(t, "spec: {list: [a]}"))
	s := defaultOf(t, desired)
	found := s.CompareProjection(desired, complete(decode(t, "spec: {list: [a, {observer_schema_list_current_length: 3}]}")))
	if len(found) != 1 || found[0].Kind != schema.TooLong || found[0].Cut != nil {
		t.Errorf("found is %v", found)
	}
	check.Empty(t, "differences without a length", s.CompareProjection(desired, complete(decode(t, "spec: {list: [a]}"))))
	s = parse(t, complete(decode(t, "spec: {list: [{v: null}, {v: null}, {observer_schema_list_min_length: 0, observer_schema_list_max_length: 2, observer_schema_list_key: k}]}")))
	desired = complete(decode(t, "spec: {list: [{k: a, v: 1}]}"))
	found = s.CompareProjection(desired, s.Project(desired, complete(decode(t, "spec: {list: [{k: x, v: 2}, {k: y}, {k: z}, {k: a, v: 1}]}"))))
	if len(found) != 1 || found[0].Kind != schema.TooLong || found[0].Cut != nil {
		t.Errorf("by key, found is %v", found)
	}
}

// Long lists use another lookup: with keys of several fields, numbers in any form, elements of
// equal key, and places beyond the desired ones.
func TestLongKeyedLists(t *testing.T) {
	const control = "{observer_schema_list_min_length: 4, observer_schema_list_max_length: 0, observer_schema_list_key: [k, l]}"
	desired := []any{object{"k": int64(1_000_000), "l": int64(12), "v": "0"}, object{"k": int64(1), "l": int64(12), "v": "a"}, object{"k": int64(11), "l": int64(2), "v": "b"}, object{"k": int64(11), "l": int64(2), "v": "c"}}
	live := []any{desired[2], desired[3], object{"k": int64(7), "l": int64(7), "v": "learned"}, object{"k": 1.0, "l": 12.0, "v": "a"}, object{"k": 1e6, "l": 12.0, "v": "0"}}
	for i := range 30 {
		live = append(live, object{"k": int64(100 + i), "l": 0.5, "v": "stranger"})
	}
	s := parse(t, complete(object{"spec": object{"list": append(slices.Repeat([]any{object{"v": nil}}, 5), decode(t, control))}}))
	manifest, object := complete(object{"spec": object{"list": desired}}), complete(object{"spec": object{"list": live}})
	found := s.Compare(manifest, object)
	if len(found) != 1 || found[0].Kind != schema.Unknown || found[0].Path.String() != "spec.list[2].v" {
		t.Errorf("found is %v", describe(found))
	}
}

// An accepted length does not affect the comparison of the elements.
func TestAcceptedLengthOfAList(t *testing.T) {
	desired := complete(decode(t, "spec: {list: [a]}"))
	s := defaultOf(t, desired)
	s = s.Accept(s.Forms(desired, complete(decode(t, "spec: {list: [a, added]}"))))
	found := s.Compare(desired, complete(decode(t, "spec: {list: [evil, added]}")))
	same(t, []object{{"Changed": "spec.list[0]", "want": "a", "have": "evil"}}, describe(found))
}

// An accepted form of an element is none of its list. A form of an element beyond the observed
// ones has no effect.
func TestFormsOfElements(t *testing.T) {
	desired := complete(decode(t, "spec: {list: [1], other: [a]}"))
	s := defaultOf(t, desired)
	form := s.Forms(desired, complete(decode(t, "spec: {list: [2], other: [a]}")))[0]
	s = s.Accept([]schema.Form{form, {Path: append(slices.Clone(form.Path[:2]), schema.Step{Index: 1}), Want: "a", Have: "b"}})
	found := s.Compare(desired, complete(decode(t, "spec: {list: [2, 3], other: [a]}")))
	if len(found) != 1 || found[0].Kind != schema.TooLong {
		t.Errorf("found is %v", found)
	}
}

// An operation that refines a schema leaves the original unchanged, its lists too.
func TestRefinementsAreOwn(t *testing.T) {
	desired := complete(decode(t, "{spec: {list: [{parts: [{name: a, v: 1}]}], b: 1}, data: {}, more: {}}"))
	before := complete(decode(t, "spec: {list: [{parts: [{name: a, v: 2}]}], b: 1}"))
	moved := complete(decode(t, "spec: {list: [{parts: [{name: x}, {name: a, v: 1}]}], b: 1}"))
	s := defaultOf(t, desired)
	want := [][]object{describe(s.Compare(desired, before)), describe(s.Compare(desired, moved))}
	document := s.Document()
	s.Accept(s.Forms(desired, before))
	s.Align(keyed("name"))
	s.ByValue()
	s.Observe("a")
	s.Observe("spec", "a")
	s.Unobserve("spec", "b")
	same(t, want, [][]object{describe(s.Compare(desired, before)), describe(s.Compare(desired, moved))})
	same(t, document, s.Document())

	stated := parse(t, complete(decode(t, "spec: [{observer_schema_list_min_length: 0, observer_schema_list_max_length: 0, observer_schema_list_key: [a, b]}]")))
	document = runtime.DeepCopyJSON(stated.Document())
	scribble(stated.Document()["spec"])
	same(t, document, stated.Document())
}

// The identity of a schema has no namespace, and Unobserve cannot remove it.
func TestIdentityOfASchema(t *testing.T) {
	s := defaultOf(t, complete(decode(t, "metadata: {namespace: demo}")))
	id := s.ID()
	check.Equal(t, "namespace", "", id.Namespace)
	check.Equal(t, "name", "top50", id.Name)
	for _, path := range [][]string{{"metadata", "name"}, {"kind"}, {"metadata", "nothing"}, {}} {
		same(t, s.Document(), s.Unobserve(path...).Document())
	}
}

// Names are cut between letters, in messages as in paths. Warnings have a limit of their own.
func TestFindingsWithLongNames(t *testing.T) {
	long := strings.Repeat("é", 5_000)
	deep := any("mistake")
	for range 50 {
		deep = object{strings.Repeat("x", 300): deep}
	}
	_, findings := schema.Mangle([]any{complete(object{})}, []any{complete(object{"spec": object{long: 1.5, "x" + long: 1.5, "deep": deep}})})
	check.Equal(t, "findings", 3, len(findings))
	for _, finding := range findings {
		if !utf8.ValidString(finding.Path+finding.Message) || len(finding.Message) > 1000 || len(finding.Path) > 2000 {
			t.Errorf("finding with %d and %d bytes", len(finding.Path), len(finding.Message))
		}
	}
	list := decode(t, "list: [{observer_schema_list_min_length: 0, observer_schema_list_max_length: 0}]")["list"]
	given, lists := object{}, object{}
	for i := range 1500 {
		given[fmt.Sprint(i)], lists[fmt.Sprint(i)] = []any{"a"}, list
	}
	set, findings := schema.Mangle([]any{complete(object{"spec": given})}, []any{complete(object{"spec": lists})})
	if set == nil || len(findings) != 1000 || len(findings.Errors()) > 0 || len(findings.Warnings()) != 1000 {
		t.Errorf("%d findings, %d errors", len(findings), len(findings.Errors()))
	}
	mixed := append(findings.Warnings()[:1:1], schema.Finding{Code: "mistake"})
	check.Equal(t, "warnings", 1, len(mixed.Warnings()))
	check.Equal(t, "errors", 1, len(mixed.Errors()))
}
