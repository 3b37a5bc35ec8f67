package schema_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

// atomic is an API type whose lists and objects have one writer.
type atomic struct{}

func (atomic) Field(string) schema.Type    { return atomic{} }
func (atomic) Element() schema.Type        { return atomic{} }
func (atomic) Keys() []schema.Key          { return nil }
func (atomic) Key(name string) schema.Key  { return schema.Key{Name: name} }
func (atomic) Structure() schema.Structure { return schema.AtomicMap }

// sets is an API type whose lists are sets.
type sets struct{ atomic }

func (sets) Field(string) schema.Type    { return sets{} }
func (sets) Element() schema.Type        { return sets{} }
func (sets) Structure() schema.Structure { return schema.SetList }

func apiTypes() map[string]schema.Type {
	return map[string]schema.Type{"unknown": nil, "keyed": keyed("name"), "atomic": atomic{}, "sets": sets{}}
}

// checkAligned checks the laws that hold for schemas that are aligned with a type.
func checkAligned(t *testing.T, s sample) {
	t.Helper()
	whole, err := schema.Default(s.first)
	check.Must(t, err)
	for name, kind := range apiTypes() {
		for what, observed := range map[string]schema.Schema{"custom": s.schema, "default": whole} {
			aligned := sample{document: observed.Document(), first: s.first, second: s.second, live: s.live, schema: observed.Align(kind)}
			checkRepaired(t, aligned)
			checkPatch(t, aligned)
			checkKnown(t, aligned)
			checkAdditions(t, aligned)
			checkStored(t, aligned, aligned.second)
			checkIndependent(t, aligned)
			if t.Failed() {
				t.Fatalf("a %s schema, aligned with the type %s: %s\nfirst %s\nlive %s", what, name, text(t, aligned.document), text(t, s.first), text(t, s.live))
			}
		}
	}
}

// After the repair no drift remains that could be repaired, and objects outside of lists keep what
// is not observed.
func checkRepaired(t *testing.T, s sample) {
	t.Helper()
	for _, desired := range s.desired() {
		overlaid := s.schema.Overlay(desired, s.live)
		check.Empty(t, "patch after Overlay", s.schema.Patch(desired, overlaid))
		check.Empty(t, "patch of the desired object itself", s.schema.Patch(desired, desired))
	}
}

// Known values stay, and nothing is unknown afterwards.
func checkKnown(t *testing.T, s sample) {
	t.Helper()
	known := s.schema.LateInitialize(s.first, s.live)
	checkKept(t, s.first, known)
	check.Equal(t, "Retain(manifest, Learned(desired, manifest))", known, s.schema.Retain(s.first, s.schema.Learned(known, s.first)))
}

// What the server adds to a default schema's objects is accepted, and nothing else is.
func checkAdditions(t *testing.T, s sample) {
	t.Helper()
	before := s.schema.Compare(s.first, s.live)
	accepted := s.schema.Accept(s.schema.Forms(s.first, s.second))
	check.Equal(t, "the document afterwards", s.schema.Document(), accepted.Document())
	if len(before) == 0 {
		check.Empty(t, "differences after accepting others", accepted.Compare(s.first, s.live).Drift())
	}
}

func FuzzAligned(f *testing.F) { fuzz(f, checkAligned) }

// An object with one writer, observed by a default schema, is restored exactly, whatever another client did to it.
func TestOneWriter(t *testing.T) {
	for choices := range tapes(t, 7, 400, 2000) {
		s := choices.sample()
		manifest := complete(object{"spec": withoutNull(s.first["spec"])})
		whole, err := schema.Default(manifest)
		check.Must(t, err)
		whole = whole.Align(atomic{})
		live := runtime.DeepCopyJSON(s.live)
		overlaid := whole.Overlay(manifest, live)
		if diff := cmp.Diff(normal(t, withoutNull(manifest["spec"])), normal(t, withoutNull(overlaid["spec"]))); diff != "" && manifest["spec"] != nil {
			t.Fatalf("manifest %s\nlive %s\n-want +got\n%s", text(t, manifest), text(t, live), diff)
		}
	}
}

// withoutNull omits fields that are null, which are absent, and empty lists.
func withoutNull(value any) any {
	switch value := value.(type) {
	case object:
		fields := object{}
		for name, field := range value {
			if kept := withoutNull(field); kept != nil {
				fields[name] = kept
			}
		}
		return fields
	case []any:
		items := make([]any, 0, len(value))
		for _, item := range value {
			if kept := withoutNull(item); kept != nil {
				items = append(items, kept)
			}
		}
		if len(items) == 0 {
			return nil
		}
		return items
	}
	return value
}

// Each case has a list before and after the repair, as a user would write it.
func TestOrder(t *testing.T) {
	list := func(names ...string) []any {
		items := make([]any, 0, len(names))
		for _, name := range names {
			items = append(items, object{"name": name})
		}
		return items
	}
	cases := []struct {
		why                 string
		desired, live, want []any
		most                int // operations
	}{
		{"the same", list("a", "b", "c"), list("a", "b", "c"), list("a", "b", "c"), 0},
		{"the first is gone", list("a", "b", "c"), list("b", "c"), list("a", "b", "c"), 1},
		{"one in the middle is gone", list("a", "b", "c"), list("a", "c"), list("a", "b", "c"), 1},
		{"the last is gone", list("a", "b", "c"), list("a", "b"), list("a", "b", "c"), 1},
		{"two are swapped", list("a", "b", "c"), list("b", "a", "c"), list("a", "b", "c"), 2},
		{"the last is first", list("a", "b", "c"), list("c", "a", "b"), list("a", "b", "c"), 2},
		{"reversed", list("a", "b", "c", "d"), list("d", "c", "b", "a"), list("a", "b", "c", "d"), 6},
		{"one more in front", list("a", "b"), list("x", "a", "b"), list("a", "b"), 1},
		{"one more, and another gone", list("a", "b", "c"), list("a", "x", "c"), list("a", "b", "c"), 2},
		{"a second one", list("a", "b"), list("a", "b", "a"), list("a", "b"), 1},
		{"all gone", list("a", "b"), list(), list("a", "b"), 2},
		{"none is wanted", []any{}, list("x", "y"), []any{}, 2},
	}
	for _, c := range cases {
		for _, name := range []string{"keyed", "unknown", "atomic"} {
			t.Run(c.why+", "+name, func(t *testing.T) {
				desired, live := complete(object{"spec": object{"list": c.desired}}), complete(object{"spec": object{"list": c.live}})
				s := defaultOf(t, desired).Align(apiTypes()[name])
				patch := s.Patch(desired, live)
				check.Equal(t, "list", any(c.want), s.Overlay(desired, live)["spec"].(object)["list"])
				check.Equal(t, "list after the patch", normal(t, c.want), normal(t, patched(t, live, patch)["spec"].(object)["list"]))
				if len(patch) > c.most {
					t.Errorf("%d operations: %v", len(patch), patch)
				}
			})
		}
	}
}

// In a list that may grow, what is not observed stays where it is, and what is observed keeps its order.
func TestOrderAmongOthers(t *testing.T) {
	random := tape(slices.Repeat([]byte{5, 17, 3, 250, 9, 44, 101, 7, 88, 23, 61}, 400))
	for range 300 {
		var names []string
		for i := range random.below(6) {
			names = append(names, fmt.Sprint("n", i))
		}
		desired, document := []any{}, []any{}
		for _, name := range names {
			desired, document = append(desired, object{"name": name, "v": int64(1)}), append(document, object{"name": nil, "v": nil})
		}
		document = append(document, object{minLength: int64(len(names)), maxLength: int64(0)})
		live := []any{}
		for i := range random.below(9) {
			name := fmt.Sprint("other", i)
			if len(names) > 0 && random.below(2) == 0 {
				name = names[random.below(len(names))]
			}
			live = append(live, object{"name": name, "v": int64(random.below(2)), "extra": int64(i)})
		}
		s := parse(t, complete(object{"spec": object{"list": document}})).Align(keyed("name"))
		before := complete(object{"spec": object{"list": live}})
		after := s.Overlay(complete(object{"spec": object{"list": desired}}), before)["spec"].(object)["list"].([]any)
		var others, othersBefore, observed []string
		split := func(items []any) (others, observed []string) {
			for _, item := range items {
				name := item.(object)["name"].(string)
				if slices.Contains(names, name) {
					observed = append(observed, name)
				} else {
					others = append(others, name)
				}
			}
			return others, observed
		}
		others, observed = split(after)
		othersBefore, _ = split(live)
		check.Equal(t, "others", othersBefore, others)
		check.Equal(t, "observed", names, observed)
	}
}
