package schema_test

import (
	"fmt"
	"testing"

	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

// Accepting the form that the server wrote makes that form equal, and no other.
func TestForms(t *testing.T) {
	forEach(t, "forms.yaml", func(t *testing.T, c testCase) {
		desired, written := c.object("manifest"), complete(c.object("written"))
		s := defaultOf(t, desired).Align(keyed("k"))
		forms := s.Forms(desired, written)
		c.check(t, "forms", describeForms(forms))
		accepted := s.Accept(forms)
		check.Empty(t, "drift of what was accepted", accepted.Compare(desired, written).Drift())
		check.Empty(t, "forms of what was accepted", accepted.Forms(desired, written))
	})
}

func describeForms(forms []schema.Form) []object {
	described := make([]object, 0, len(forms))
	for _, form := range forms {
		fields := object{"path": form.Path.String(), "want": form.Want}
		if form.Have != nil {
			fields["have"] = form.Have
		}
		described = append(described, fields)
	}
	return described
}

func TestAccept(t *testing.T) {
	desired := complete(decode(t, "spec: {cpu: 0.5, zero: 0, list: [a], inner: {deep: 1}}"))
	s := defaultOf(t, desired)
	accepted := s.Accept(s.Forms(desired, complete(decode(t, "spec: {cpu: 500m, list: [A, sidecar], inner: {deep: '1'}}"))))
	cases := []struct {
		why, live string
		want      schema.Patch
	}{
		{"the form that was accepted", "spec: {cpu: 500m, list: [A, sidecar], inner: {deep: '1'}}", nil},
		{"the desired value itself is as good", "spec: {cpu: 0.5, zero: 0, list: [a], inner: {deep: 1}}", nil},
		{"another value is reverted to the desired one", "spec: {cpu: 501m, list: [A, sidecar], inner: {deep: '1'}}",
			schema.Patch{{Op: "replace", Path: "/spec/cpu", Value: 0.5}}},
		{"a zero that the server drops is no other value", "spec: {cpu: 500m, zero: 5, list: [A, sidecar], inner: {deep: '1'}}",
			schema.Patch{{Op: "replace", Path: "/spec/zero", Value: int64(0)}}},
		{"another length than the one that was accepted", "spec: {cpu: 500m, list: [A, sidecar, more], inner: {deep: '1'}}",
			schema.Patch{{Op: "remove", Path: "/spec/list/2"}, {Op: "remove", Path: "/spec/list/1"}}},
		{"what was there in another form is missed when it is gone", "spec: {cpu: 500m, list: [A, sidecar]}",
			schema.Patch{{Op: "add", Path: "/spec/inner", Value: object{"deep": int64(1)}}}},
	}
	for _, c := range cases {
		t.Run(c.why, func(t *testing.T) {
			same(t, c.want, accepted.Patch(desired, complete(decode(t, c.live))))
		})
	}
	t.Run("a form is that of one desired value, and says nothing of another", func(t *testing.T) {
		changed := complete(decode(t, "spec: {cpu: 0.7, zero: 0, list: [a], inner: {deep: 1}}"))
		live := complete(decode(t, "spec: {cpu: 500m, list: [a], inner: {deep: 1}}"))
		same(t, schema.Patch{{Op: "replace", Path: "/spec/cpu", Value: 0.7}}, accepted.Patch(changed, live))
	})
	t.Run("the schema itself is as before", func(t *testing.T) {
		drift := s.Compare(desired, complete(decode(t, "spec: {cpu: 500m, zero: 0, list: [a], inner: {deep: 1}}")))
		check.Equal(t, "differences, as it does not know the form", 1, len(drift))
	})
	t.Run("a form of what is not observed has no effect", func(t *testing.T) {
		none := complete(object{})
		for _, form := range s.Forms(desired, complete(decode(t, "spec: {cpu: 500m, list: [A], inner: {deep: '1'}}"))) {
			same(t, defaultOf(t, none).Document(), defaultOf(t, none).Accept([]schema.Form{form}).Document())
		}
	})
}

func TestByValue(t *testing.T) {
	cases := []struct {
		desired, live any
		equal         bool
	}{
		{0.5, "500m", false}, // a text is not a number
		{int64(4), "4", false},
		{int64(474915), "0474915", false},
		{"1Gi", "1024Mi", false},
		{int64(1), nil, false},
		{object{"a": nil, "cpu": 0.5}, object{"cpu": 0.5, "b": nil}, true},
		{object{"a": nil, "cpu": 0.5}, object{"cpu": 0.5}, true},
		{object{"cpu": 0.5}, object{"cpu": 0.5, "b": nil}, true},
		{object{"cpu": 0.5}, object{"cpu": 0.5, "b": false}, false},
		{[]any{object{"cpu": int64(1), "a": nil}, "x"}, []any{object{"cpu": int64(1)}, "x"}, true},
		{[]any{int64(1)}, []any{int64(1), int64(1)}, false},
		{[]any{int64(1)}, object{}, false},
	}
	literal := parse(t, complete(object{"spec": object{"a": nil}}))
	for _, c := range cases {
		desired, live := complete(object{"spec": object{"a": c.desired}}), complete(object{"spec": object{"a": c.live}})
		check.Equal(t, fmt.Sprintf("%#v and %#v are equal", c.desired, c.live), c.equal, len(literal.ByValue().Compare(desired, live)) == 0)
		check.Equal(t, fmt.Sprintf("%#v and %#v are literally equal", c.desired, c.live), false, len(literal.Compare(desired, live)) == 0)
	}
}

// Labels and annotations are compared as they are.
func TestByValueLeavesMetadataAlone(t *testing.T) {
	desired := complete(decode(t, "{metadata: {annotations: {size: {a: 1, b: null}}}, spec: {list: [{size: [{a: 1, b: null}]}]}}"))
	live := complete(decode(t, "{metadata: {annotations: {size: {a: 1}}}, spec: {list: [{size: [{a: 1}]}]}}"))
	found := parse(t, complete(decode(t, "{metadata: {annotations: null}, spec: null}"))).ByValue().Compare(desired, live)
	if len(found) != 1 || found[0].Path.String() != "metadata.annotations" {
		t.Errorf("found is %v", found)
	}
}

func TestWithoutServerOwned(t *testing.T) {
	forEach(t, "server_owned.yaml", func(t *testing.T, c testCase) {
		s := c.schema(t)
		got, left := s.WithoutServerOwned()
		c.check(t, "want", got.Document())
		same(t, c.texts("left"), left)
		c.check(t, "schema", s.Document()) // the receiver is unchanged
	})
}
