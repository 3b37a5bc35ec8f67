package schema_test

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

func TestReleased(t *testing.T) {
	forEach(t, "released.yaml", func(t *testing.T, c testCase) {
		s := c.schema(t)
		released, _ := s.Released(c.object("desired"), c.object("former"), c.object("learned"), c.object("live"))
		c.check(t, "operations", append(schema.Patch{}, released.Patch()...))
		c.check(t, "schema", s.Document())
	})
}

// The keys may also come from the API. A value that the API server assigned was never the manifest's, and stays.
func TestReleasedByTheKeysOfTheAPI(t *testing.T) {
	for _, c := range []struct{ why, desired, former, learned, live, want string }{
		{
			"each element follows its key", "[{k: a}, {k: b}]", "[{k: b, x: 1}, {k: a, x: 1}, {observer_schema_list_current_length: 2}]", "[]",
			"[{k: b, x: 2}, {k: new, x: 1}, {k: a, x: 1}]", "/spec/list/2/x",
		},
		{
			"elements of one key are matched by index", "[{k: a}, {k: a, x: 1}]", "[{k: a, x: 1}, {k: a, x: 1}, {observer_schema_list_current_length: 2}]", "[{k: a, y: 1}]",
			"[{k: a, x: 1, y: 1}, {k: a, x: 1}]", "/spec/list/0/x",
		},
		{
			"nothing learned, from the only element either", "[{k: a}]", "[{k: a, x: 1, y: 1}, {observer_schema_list_current_length: 1}]", "[{k: a, y: 1}]",
			"[{k: a, x: 1, y: 1}]", "/spec/list/0/x",
		},
	} {
		t.Run(c.why, func(t *testing.T) {
			of := func(list string) object { return complete(decode(t, "spec: {list: "+list+"}")) }
			released, _ := defaultOf(t, of(c.desired)).Align(keyed("k")).Released(of(c.desired), of(c.former), of(c.learned), of(c.live))
			same(t, schema.Patch{{Op: "remove", Path: c.want}}, released.Patch())
		})
	}
}

// change is a change of the spec, from the former to the next.
type change struct {
	former, present              schema.Schema
	desired                      object
	projection, learned, changed object
}

// changes returns possible changes. The schema grows, shrinks or stays. The live object is
// unchanged, or another client has changed it.
func (s sample) changes(t *testing.T) []change {
	t.Helper()
	bare, whole := parse(t, complete(object{})), defaultOf(t, s.second)
	var all []change
	for _, former := range []schema.Schema{s.schema, defaultOf(t, s.first)} {
		known := former.LateInitialize(s.first, s.live)
		learned := former.Learned(known, s.first)
		repaired := former.Overlay(known, s.live)
		projection := former.Project(known, repaired)
		for _, present := range []schema.Schema{s.schema, whole, bare} {
			desired := present.Retain(s.second, learned)
			for _, live := range []object{repaired, s.live} {
				all = append(all, change{former, present, desired, projection, learned, live})
			}
		}
	}
	return all
}

// A released value was set under the former schema, and the next one does not ask for it. Its
// removal changes nothing that is observed, and happens once.
func checkReleased(t *testing.T, s sample) {
	t.Helper()
	for _, c := range s.changes(t) {
		checkChange(t, c)
		now := c.present.Project(c.desired, c.changed)
		fields, elements := c.present.Released(c.desired, now, nil, c.changed)
		check.Empty(t, "released of what is observed now", slices.Concat(fields, elements))
	}
	bare := parse(t, complete(object{}))
	checkChange(t, change{bare, s.schema, s.first, s.second, s.document, s.live}) // of any shape
	checkChange(t, change{bare, bare, object{}, s.live, object{}, s.live})
}

func checkChange(t *testing.T, c change) {
	t.Helper()
	before := []object{runtime.DeepCopyJSON(c.desired), runtime.DeepCopyJSON(c.projection), runtime.DeepCopyJSON(c.learned), runtime.DeepCopyJSON(c.changed)}
	released, _ := c.present.Released(c.desired, c.projection, c.learned, c.changed)
	check.Equal(t, "the arguments afterwards", before, []object{c.desired, c.projection, c.learned, c.changed})
	if len(released) == 0 {
		return
	}
	patch := released.Patch()
	for i, difference := range released {
		if patch[i].Op != "remove" || difference.Path[len(difference.Path)-1].Index != -1 {
			t.Errorf("%v removes no field", patch[i])
		}
		checkOurs(t, c, difference)
	}
	after := patched(t, c.changed, patch)
	want, got := c.present.Project(c.desired, c.changed), c.present.Project(c.desired, after)
	check.Equal(t, fmt.Sprintf("what is observed after %v", patch), normal(t, want), normal(t, got))
	again, _ := c.present.Released(c.desired, c.projection, c.learned, after)
	check.Empty(t, fmt.Sprintf("released after %v", patch), again)
}

// checkOurs checks that the removed value was ours alone. It compares by field names, in any
// element.
func checkOurs(t *testing.T, c change, removed schema.Difference) {
	t.Helper()
	names := namesOf(removed.Path)
	if !slices.ContainsFunc(valuesAt(c.projection, names), func(former any) bool { return isFrom(former, removed.Have) }) {
		t.Errorf("%s: %v was never ours", removed.Path, removed.Have)
	}
	if wanted := valuesAt(c.desired, names); len(wanted) > 0 && len(names) == len(removed.Path) {
		t.Errorf("%s is desired", removed.Path)
	}
	if learned := valuesAt(c.learned, names); len(learned) > 0 && len(names) == len(removed.Path) {
		t.Errorf("%s was learned", removed.Path)
	}
	if c.present.Observes(names...) && len(names) == len(removed.Path) {
		t.Errorf("%s is observed", removed.Path)
	}
}

// isFrom reports whether every field of a removed value was in the former one.
func isFrom(former, removed any) bool {
	switch removed := removed.(type) {
	case object:
		fields, ok := former.(object)
		for name, value := range removed {
			if value != nil && !isFrom(fields[name], value) {
				return false
			}
		}
		return ok
	case []any:
		_, ok := former.([]any)
		return ok
	}
	return equal(former, removed)
}

func namesOf(path schema.Path) []string {
	var names []string
	for _, step := range path {
		if step.Index == -1 {
			names = append(names, step.Field)
		}
	}
	return names
}

// valuesAt returns the values at a field, from all elements on the path.
func valuesAt(value any, names []string) []any {
	switch value := value.(type) {
	case nil:
		return nil
	case []any:
		var all []any
		for _, item := range value {
			if _, nested := item.(object); nested || len(names) > 0 {
				all = append(all, valuesAt(item, names)...)
			}
		}
		if len(names) == 0 {
			all = append(all, value)
		}
		return all
	case object:
		if len(names) > 0 {
			return valuesAt(value[names[0]], names[1:])
		}
	}
	if len(names) > 0 {
		return nil
	}
	return []any{value}
}

func TestForget(t *testing.T) {
	forEach(t, "forget.yaml", func(t *testing.T, c testCase) {
		s := c.schema(t)
		forgotten, removals := s.Forget(c.object("desired"), c.object("manifest"), c.object("live"), c.texts("field")...)
		c.check(t, "forgotten", forgotten)
		c.check(t, "operations", append(schema.Patch{}, removals.Patch()...))
		c.check(t, "schema", s.Document())
		scribble(forgotten) // forEach checks whether that reached an argument
	})
}

// A list that was removed from the spec as a whole has no keys: a field identifies elements if its value differs in
// each. In another order, the live list is still the former one, unless it has no objects.
func TestReleasedInAnyOrder(t *testing.T) {
	const env, images = "{name: b, value: v}, {name: a, valueFrom: {x: 1}}", "{image: i, name: b}, {image: i, name: a}"
	for name, c := range map[string]struct {
		former, live string
		released     bool
	}{
		"the same":                     {env, "[{name: b, value: v}, {name: a, valueFrom: {x: 1}}]", true},
		"in another order":             {env, "[{name: a, valueFrom: {x: 1}}, {name: b, value: v}]", true},
		"with more in one":             {env, "[{name: a, valueFrom: {x: 1}}, {name: b, value: v, more: 1}]", true},
		"one is changed":               {env, "[{name: a, valueFrom: {x: 2}}, {name: b, value: v}]", false},
		"one is another":               {env, "[{name: c, valueFrom: {x: 1}}, {name: b, value: v}]", false},
		"one is there twice":           {env, "[{name: a, valueFrom: {x: 1}}, {name: a, valueFrom: {x: 1}}]", false},
		"there is one more":            {env, "[{name: a, valueFrom: {x: 1}}, {name: b, value: v}, {name: c}]", false},
		"one has another form":         {env, "[{name: {x: 1}}, {name: b, value: v}]", false},
		"a field that is in each":      {images, "[{image: i, name: a}, {image: i, name: b}]", true},
		"no objects, in another order": {"a, b", "[b, a]", false},
	} {
		t.Run(name, func(t *testing.T) {
			desired, live := complete(decode(t, "spec: {}")), complete(decode(t, "spec: {list: "+c.live+"}"))
			former := complete(decode(t, "spec: {list: ["+c.former+", {observer_schema_list_current_length: 2}]}"))
			fields, _ := defaultOf(t, desired).Released(desired, former, nil, live)
			var want schema.Patch
			if c.released {
				want = schema.Patch{{Op: "remove", Path: "/spec/list"}}
			}
			same(t, want, fields.Patch())
		})
	}
}

// An element whose key has left the spec goes in the patch of its list, if it is as before.
func TestReleasedElements(t *testing.T) {
	const observed = "{k: null, v: null}, {k: null, v: null}, {observer_schema_list_min_length: 2, observer_schema_list_max_length: 0}"
	s := parse(t, complete(decode(t, "spec: {env: ["+observed+"]}"))).Align(keyed("k"))
	desired := complete(decode(t, "spec: {env: [{k: a, v: 1}, {k: new, v: 2}]}"))
	former := complete(decode(t, "spec: {env: [{k: a, v: 1}, {k: b, v: 2}, {observer_schema_list_current_length: 3}]}"))
	for _, c := range []struct {
		why, live string
		want      schema.Patch
	}{
		{"renamed", "[{k: b, v: 2, default: 1}, {k: other, v: 3}, {k: a, v: 1}]", schema.Patch{
			{Op: "remove", Path: "/spec/env/0"}, {Op: "add", Path: "/spec/env/2", Value: object{"k": "new", "v": int64(2)}},
		}},
		{"changed by another client", "[{k: a, v: 1}, {k: b, v: 3}]", schema.Patch{{Op: "add", Path: "/spec/env/1", Value: object{"k": "new", "v": int64(2)}}}},
		{"gone", "[{k: a, v: 1}, {k: new, v: 2}]", nil},
		{"beside the new one", "[{k: a, v: 1}, {k: b, v: 2}, {k: new, v: 2}, {k: other, v: 2}]", schema.Patch{{Op: "remove", Path: "/spec/env/1"}}},
	} {
		live := complete(decode(t, "spec: {env: "+c.live+"}"))
		fields, elements := s.Released(desired, former, nil, live)
		check.Empty(t, c.why, fields)
		same(t, c.want, s.Compare(desired, live, elements...).Patch())
	}
}
