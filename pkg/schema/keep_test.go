package schema_test

import (
	"encoding/json"
	"testing"

	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

func TestKeep(t *testing.T) {
	desired := complete(decode(t, "spec: {cpu: 0.5, inner: {deep: 1}, parts: [{k: a, v: 1}], list: [a]}"))
	written := complete(decode(t, "spec: {cpu: 500m, inner: {deep: '1'}, parts: [{k: a, v: '1'}], list: [a, b]}"))
	s := defaultOf(t, desired)
	forms := s.Forms(desired, written)
	check.Equal(t, "forms", 4, len(forms))
	cases := []struct {
		why, present string
		want         []string
	}{
		{"nothing has changed", "{cpu: 0.5, inner: {deep: 1}, parts: [{k: a, v: 1}], list: [a]}", []string{"spec.cpu", "spec.inner.deep", "spec.list", "spec.parts[0].v"}},
		{"a value that changed has another form", "{cpu: 0.7, inner: {deep: 1}, parts: [{k: a, v: 2}], list: [b]}", []string{"spec.inner.deep", "spec.list"}},
		{"a number written otherwise is the same value", "{cpu: 0.5, inner: {deep: 1.0}}", []string{"spec.cpu", "spec.inner.deep"}},
		{"another length", "{list: [a, b]}", nil},
		{"the schema looks no longer there, or no longer into it", "{inner: 1, parts: {v: 1}, list: a}", nil},
	}
	for _, c := range cases {
		t.Run(c.why, func(t *testing.T) {
			present := complete(decode(t, "spec: "+c.present))
			var kept []string
			for _, form := range defaultOf(t, present).Keep(present, forms) {
				kept = append(kept, form.Path.String())
			}
			same(t, c.want, kept)
		})
	}
	t.Run("a path that leads nowhere", func(t *testing.T) {
		hostile := []schema.Form{{}, {Path: schema.Path{{Field: "kind", Index: -1}}, Want: "Song"}, {Path: schema.Path{{Index: 3}}}, {Path: schema.Path{{Field: "spec", Index: -7}}},
			{Path: schema.Path{{Field: "spec", Index: -1}, {Field: "list", Index: -1}, {Index: -7}}}}
		same(t, []schema.Form(nil), s.Keep(desired, hostile))
	})
}

// An object or a list that the server has replaced by another type has no accepted form: no
// form can make them equal.
func TestAnotherShapeIsNoForm(t *testing.T) {
	desired := complete(decode(t, "spec: {inner: {a: 1}, list: [a]}"))
	same(t, []schema.Form(nil), defaultOf(t, desired).Forms(desired, complete(decode(t, "spec: {inner: a, list: a}"))))
}

// Keep retains all forms of a desired object. Of another desired object's forms, it drops only
// those without effect. Forms survive being stored.
func checkKeep(t *testing.T, s sample) {
	t.Helper()
	written, _ := rewrite(s.first).(object)
	for _, answer := range []object{written, s.live, s.second} {
		stored := checkStored(t, s, answer)
		for _, desired := range []object{s.first, s.second} {
			all, kept := s.schema.Accept(stored), s.schema.Accept(s.schema.Keep(desired, stored))
			same(t, describe(all.Compare(desired, answer)), describe(kept.Compare(desired, answer)))
		}
	}
}

// checkStored checks that the forms of an answer are kept and survive being stored, and returns them.
func checkStored(t *testing.T, s sample, answer object) (stored []schema.Form) {
	t.Helper()
	forms := s.schema.Forms(s.first, answer)
	check.Equal(t, "forms that are kept", forms, s.schema.Keep(s.first, forms))
	check.Must(t, json.Unmarshal([]byte(text(t, forms)), &stored))
	same(t, text(t, forms), text(t, stored))
	return stored
}

func TestPathJSONRefuses(t *testing.T) {
	for _, text := range []string{
		`["a",-1]`, `[-0]`, `[1.0]`, `[1e3]`, `[2147483648]`, `[99999999999999999999]`, `[null]`, `[true]`, `[{}]`, `[["a"]]`, `"spec"`, `{}`, `7`, `[`,
	} {
		path := schema.Path{{"before", -1}}
		if err := json.Unmarshal([]byte(text), &path); err == nil {
			t.Errorf("%s is read as %v", text, path)
		}
		same(t, schema.Path{{"before", -1}}, path)
	}
}

func TestFormJSON(t *testing.T) {
	const large = 1<<53 + 1
	forms := []schema.Form{
		{Path: schema.Path{{"spec", -1}, {"a", -1}}, Want: int64(large), Have: "9007199254740993"},
		{Path: schema.Path{{"zero", -1}}, Want: int64(0)},
		{Path: schema.Path{{"false", -1}}, Want: false, Have: 0.5},
		{Path: schema.Path{{"empty", -1}}, Want: "", Have: object{"a": []any{int64(large)}}},
	}
	stored := text(t, forms)
	want := `[{"path":["spec","a"],"want":9007199254740993,"have":"9007199254740993"},{"path":["zero"],"want":0},` +
		`{"path":["false"],"want":false,"have":0.5},{"path":["empty"],"want":"","have":{"a":[9007199254740993]}}]`
	same(t, want, stored)
	var got []schema.Form
	check.Must(t, json.Unmarshal([]byte(stored), &got))
	same(t, forms, got)
	check.Equal(t, "a hostile path is read", false, json.Unmarshal([]byte(`[{"path":[-1],"want":1}]`), &got) == nil)
}
