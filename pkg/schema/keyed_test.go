package schema_test

import (
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/check"
)

// Each case states the differences and the patch. After the patch, no difference remains.
func TestKeyed(t *testing.T) {
	forEach(t, "keyed.yaml", func(t *testing.T, c testCase) {
		s, desired, live := c.schema(t), c.object("desired"), c.object("live")
		c.check(t, "differences", describe(s.Compare(desired, live)))
		c.check(t, "operations", append(schema.Patch{}, s.Patch(desired, live)...))
		check.Empty(t, "operations after the patch", s.Patch(desired, s.Overlay(desired, live)))
	})
}

// songs is an API type in which the list "parts" has keys, and so have the lists "ports" and "doors", with a default.
type songs struct{ keys []schema.Key }

func (s songs) Field(name string) schema.Type {
	switch name {
	case "parts":
		return songs{keys: []schema.Key{{Name: "name"}}}
	case "ports":
		return songs{keys: []schema.Key{{Name: "port"}, {Name: "protocol", Default: "TCP"}}}
	case "doors":
		return songs{keys: []schema.Key{{Name: "name"}, {Name: "number", Default: int64(80)}}}
	case "nobody knows":
		return nil
	}
	return songs{}
}

func (s songs) Element() schema.Type { return songs{} }
func (s songs) Keys() []schema.Key   { return s.keys }
func (s songs) Key(name string) schema.Key {
	if name == "protocol" {
		return schema.Key{Name: name, Default: "TCP"}
	}
	return schema.Key{Name: name}
}
func (s songs) Structure() schema.Structure {
	if s.keys != nil {
		return schema.KeyedList
	}
	return schema.Plain
}

func TestAlign(t *testing.T) {
	const (
		control = "{observer_schema_list_min_length: 1, observer_schema_list_max_length: 0}"
		stated  = "{observer_schema_list_min_length: 1, observer_schema_list_max_length: 0, observer_schema_list_key: id}"
	)
	cases := []struct{ why, schema, desired, live, want string }{
		{
			"the keys of the type are those of the list",
			"spec: {parts: [{beats: null}, " + control + "]}",
			"spec: {parts: [{name: a, beats: 4}]}",
			"spec: {parts: [{name: x, beats: 1}, {name: a, beats: 3}]}",
			"spec.parts[1].beats",
		},
		{
			"keys that are stated win",
			"spec: {parts: [{beats: null}, " + stated + "]}",
			"spec: {parts: [{name: a, id: 1, beats: 4}]}",
			"spec: {parts: [{name: a, id: 2, beats: 1}, {name: x, id: 1, beats: 3}]}",
			"spec.parts[1].beats",
		},
		{
			"a list in an element, whose key has a default that either may leave out",
			"spec: {parts: [{ports: [{beats: null}, {beats: null}, " + control + "]}, " + control + "]}",
			"spec: {parts: [{name: a, ports: [{port: 1, beats: 1}, {port: 1, protocol: UDP, beats: 2}]}]}",
			"spec: {parts: [{name: a, ports: [{port: 1, protocol: UDP, beats: 2}, {port: 1, protocol: TCP, beats: 9}]}]}",
			"spec.parts[0].ports[1].beats spec.parts[0].ports",
		},
		{
			"in an unknown type, the element is found that matches",
			`spec: {nobody knows: {parts: [{beats: null}, ` + control + `]}}`,
			`spec: {nobody knows: {parts: [{name: a, beats: 1}]}}`,
			`spec: {nobody knows: {parts: [{name: x, beats: 9}, {name: a, beats: 1}]}}`,
			``,
		},
	}
	for _, c := range cases {
		t.Run(c.why, func(t *testing.T) {
			literal := parse(t, complete(decode(t, c.schema)))
			s := literal.Align(songs{})
			found := s.Compare(complete(decode(t, c.desired)), complete(decode(t, c.live)))
			var paths []string
			for _, difference := range found {
				paths = append(paths, difference.Path.String())
			}
			check.Equal(t, "differences", c.want, strings.Join(paths, " "))
			check.Equal(t, "the document afterwards", literal.Document(), s.Document())
		})
	}
}

// keyed is an API type in which every list has this key.
type keyed string

func (k keyed) Field(string) schema.Type    { return k }
func (k keyed) Element() schema.Type        { return k }
func (k keyed) Keys() []schema.Key          { return []schema.Key{{Name: string(k)}} }
func (k keyed) Key(name string) schema.Key  { return schema.Key{Name: name} }
func (k keyed) Structure() schema.Structure { return schema.KeyedList }

// The example of the Krake documentation, Observers: a port of the manifest, and an optional port that was learned.
// A learned element never replaces one of the manifest, after a change by the user or a
// deletion by another client.
func TestLearnedElementsReplaceNobody(t *testing.T) {
	document := decode(t, `{apiVersion: v1, kind: Service, metadata: {name: echo}, spec: {ports: [{port: null}, {port: null},
		{observer_schema_list_min_length: 1, observer_schema_list_max_length: 2, observer_schema_list_key: port}]}}`)
	cases := []struct {
		why, manifest, live string
		want                schema.Patch
	}{
		{"as it was", "{ports: [{port: 8080}]}", "{ports: [{port: 81}, {port: 8080}]}", nil},
		{"the optional port may go", "{ports: [{port: 8080}]}", "{ports: [{port: 8080}]}", nil},
		{"the manifest's port is gone", "{ports: [{port: 8080}]}", "{ports: [{port: 81}]}", schema.Patch{
			{Op: "add", Path: "/spec/ports/-", Value: object{"port": int64(8080)}},
		}},
		{"the manifest's port is another one now", "{ports: [{port: 9090}]}", "{ports: [{port: 8080}, {port: 81}]}", schema.Patch{
			{Op: "add", Path: "/spec/ports/-", Value: object{"port": int64(9090)}},
			{Op: "remove", Path: "/spec/ports/0"},
		}},
	}
	for _, c := range cases {
		t.Run(c.why, func(t *testing.T) {
			desired := decode(t, "{apiVersion: v1, kind: Service, metadata: {name: echo}, spec: "+c.manifest+"}")
			set, findings := schema.Mangle([]any{desired}, []any{document})
			check.Empty(t, "findings", findings)
			known := set[0].LateInitialize(desired, decode(t, "spec: {ports: [{port: 8080}, {port: 81}]}"))
			known["spec"].(object)["ports"] = append(desired["spec"].(object)["ports"].([]any), object{"port": int64(81)})
			same(t, c.want, set[0].Patch(known, decode(t, "spec: "+c.live)))
		})
	}
}

// A server fills in fields that have a default. The element is the same, whether a manifest
// omits the field or writes a zero, whatever its type.
func TestKeyWithADefault(t *testing.T) {
	const ports = "ports: [{port: 1, protocol: UDP}, {port: 1, protocol: TCP, nodePort: 7}]"
	for _, c := range []struct{ observed, desired, live string }{
		{"ports: [{port: null}", "ports: [{port: 1}]", ports},
		{"ports: [{port: null}", `ports: [{port: 1, protocol: ""}]`, ports},
		{"ports: [{port: null}", "ports: [{port: 1, protocol: TCP}]", ports},
		{"doors: [{name: null}", "doors: [{name: a, number: 0}]", "doors: [{name: x, number: 1}, {name: a, number: 80}]"},
	} {
		s := parse(t, complete(decode(t, "spec: {"+c.observed+", {observer_schema_list_min_length: 1, observer_schema_list_max_length: 0}]}")))
		check.Empty(t, c.desired, s.Align(songs{}).Compare(complete(decode(t, "spec: {"+c.desired+"}")), complete(decode(t, "spec: {"+c.live+"}"))))
	}
}

// An accepted length does not permit replacing an element.
func TestAcceptedLengthOfAKeyedList(t *testing.T) {
	desired := complete(decode(t, "spec: {list: [{k: a}]}"))
	s := defaultOf(t, desired).Align(keyed("k"))
	s = s.Accept(s.Forms(desired, complete(decode(t, "spec: {list: [{k: a}, {k: added}]}"))))
	check.Empty(t, "differences from what was accepted", s.Compare(desired, complete(decode(t, "spec: {list: [{k: added}, {k: a}]}"))))
	same(t, schema.Patch{
		{Op: "remove", Path: "/spec/list/0"},
		{Op: "add", Path: "/spec/list/1", Value: object{"k": "a"}},
	}, s.Patch(desired, complete(decode(t, "spec: {list: [{k: evil}, {k: added}]}"))))
}

// A value that is learned in place belongs to the same element for a schema without the keys. With them, it follows its
// element to another place.
func TestLearnedInPlace(t *testing.T) {
	manifest := complete(decode(t, "spec: {parts: [{name: a, beats: 1}, {name: b}, {name: c, beats: 2}]}"))
	literal := parse(t, complete(decode(t, `spec: {parts: [{beats: null}, {beats: null}, {beats: null},
		{observer_schema_list_min_length: 3, observer_schema_list_max_length: 0}]}`)))
	keyed := literal.Align(keyed("name"))
	known := keyed.LateInitialize(manifest, complete(decode(t, "spec: {parts: [{name: b, beats: 7}, {name: a, beats: 1}, {name: c, beats: 2}]}")))
	learned := keyed.LearnedInPlace(known, manifest)
	check.Equal(t, "learned", decode(t, "parts: [{name: a}, {name: b, beats: 7}]"), learned["spec"].(object))
	for _, s := range []schema.Schema{keyed, literal, literal.Align(nil)} {
		check.Equal(t, "retained", known, s.Retain(manifest, learned))
	}
	moved := complete(decode(t, "spec: {parts: [{name: b}, {name: a, beats: 1}, {name: c, beats: 2}]}"))
	check.Equal(t, "retained elsewhere", complete(decode(t, "spec: {parts: [{name: b, beats: 7}, {name: a, beats: 1}, {name: c, beats: 2}]}")), keyed.Retain(moved, learned))
}

// An element may lack a field of a stated key that has a default. Of an unknown type that is a warning. An element
// without any field of the key is a mistake.
func TestStatedKeysWithDefaults(t *testing.T) {
	unknown := func(manifest.ID) schema.Type { return nil }
	known := func(manifest.ID) schema.Type { return songs{} }
	for _, c := range []struct {
		why, ports string
		typeOf     func(manifest.ID) schema.Type
		want       []string
	}{
		{"the type has a default", "[{port: 53}, {port: 53, protocol: UDP}]", known, nil},
		{"the default makes two equal", "[{port: 53}, {port: 53, protocol: TCP}]", known, []string{"key-duplicate at spec.observer_schema[0].spec.ports"}},
		{"the type has no default", "[{protocol: UDP}]", known, []string{"key-missing at spec.observer_schema[0].spec.ports"}},
		{"the type is unknown", "[{port: 53, protocol: UDP}, {port: 53}]", unknown, []string{"warning key-partly-missing at spec.observer_schema[0].spec.ports"}},
		{"no field of the key", "[{name: a}]", unknown, []string{"key-missing at spec.observer_schema[0].spec.ports"}},
		{"a field that is no key", "[{port: 53, protocol: [TCP]}]", unknown, []string{"key-missing at spec.observer_schema[0].spec.ports"}},
		{"no object", "[53]", unknown, []string{"key-missing at spec.observer_schema[0].spec.ports"}},
	} {
		t.Run(c.why, func(t *testing.T) {
			_, findings := schema.MangleTyped([]any{complete(decode(t, "spec: {ports: "+c.ports+"}"))},
				[]any{complete(decode(t, "spec: {ports: [{observer_schema_list_min_length: 9, observer_schema_list_max_length: 0, observer_schema_list_key: [port, protocol]}]}"))}, c.typeOf)
			check.Equal(t, "findings", c.want, places(findings))
		})
	}
}
