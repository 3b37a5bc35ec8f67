package schema_test

import (
	"testing"

	"github.com/krake-observer/krake-observer/test/check"
)

func TestValues(t *testing.T) {
	const control = "{observer_schema_list_min_length: 1, observer_schema_list_max_length: 0}"
	type value struct {
		Path, Place string
		Want, Have  any
	}
	for _, c := range []struct {
		why, schema, desired, live string
		want                       []value
	}{
		{
			"a field by itself, one of an object, and one that nobody has",
			"spec: {beats: null, inner: {a: null}, none: null}", "spec: {beats: 4, inner: {a: 1, b: 2}}", "spec: {beats: 3, other: 1}",
			[]value{{"spec.beats", "spec.beats", int64(4), int64(3)}, {"spec.inner.a", "spec.inner.a", int64(1), nil}, {"spec.none", "spec.none", nil, nil}},
		},
		{
			"by key, each element has two places, and what is missing has one",
			"spec: {parts: [{beats: null}, {beats: null}, " + control + "]}",
			"spec: {parts: [{name: gone, beats: 1}, {name: a, beats: 4}]}", "spec: {parts: [{name: x, beats: 1}, {name: a, beats: 3}]}",
			[]value{{"", "spec.parts[0].beats", int64(1), nil}, {"spec.parts[1].beats", "spec.parts[1].beats", int64(4), int64(3)}},
		},
		{
			"by index, what is in no list has no place",
			"spec: {list: [null, null, null, " + control + "]}", "spec: {list: [a]}", "spec: {list: [b, c]}",
			[]value{{"spec.list[0]", "spec.list[0]", "a", "b"}, {"spec.list[1]", "spec.list[1]", nil, "c"}},
		},
		{
			"what has not the shape of the schema is one value",
			"spec: {inner: {a: null}, list: [null, " + control + "]}", "spec: {inner: {a: 1}, list: [a]}", "spec: {inner: 1, list: 2}",
			[]value{{"spec.inner", "spec.inner", object{"a": int64(1)}, int64(1)}, {"spec.list", "spec.list", []any{"a"}, int64(2)}},
		},
	} {
		t.Run(c.why, func(t *testing.T) {
			s := parse(t, complete(decode(t, c.schema))).Align(songs{})
			var got []value
			for _, v := range s.Values(complete(decode(t, c.desired)), complete(decode(t, c.live))) {
				got = append(got, value{v.Path.String(), v.Place.String(), v.Want, v.Have})
			}
			check.Equal(t, "values", c.want, got)
		})
	}
}
