package manifest

import (
	"reflect"
	"testing"
)

// The plain decoder returns the same as the parser of YAML 1.1, which it does not use.
func TestDecodePlain(t *testing.T) {
	for _, test := range []struct {
		text string
		want any // nil: left to the other parser
	}{
		{text: "a: {b: [c, 'd', \"e\", 1, -1, 0, true, false]}", want: object{"a": object{"b": []any{"c", "d", "e", int64(1), int64(-1), int64(0), true, false}}}},
		{text: "a: |\n  yes\n", want: object{"a": "yes\n"}},
		{text: "a: >-\n  b\n  c\n", want: object{"a": "b c"}},
		{text: "a:\nb: null\nc: []\nd: {}", want: object{"a": nil, "b": nil, "c": []any{}, "d": object{}}},
		{text: "a: 10Gi\nb: 250m\nc: 1a2e3", want: object{"a": "10Gi", "b": "250m", "c": "1a2e3"}},
		{text: "[/bin/sh, -c, --flag=1, name, yesterday]", want: []any{"/bin/sh", "-c", "--flag=1", "name", "yesterday"}},
		{text: "a: yes"}, {text: "a: Off"}, {text: "y: 1"}, {text: "a: ~"}, {text: "a: True"}, {text: "a: FALSE"}, {text: "a: Null"}, {text: "a: NULL"},
		{text: "a: 0644"}, {text: "a: 0x1f"}, {text: "a: 1_000"}, {text: "a: +1"}, {text: "a: 1e3"}, {text: "a: 1E3"}, {text: "a: 0.5"}, {text: "a: -.inf"},
		{text: "a: .5"}, {text: "a: 1:30"}, {text: "a: 2026-01-02"}, {text: "a: 18446744073709551615"},
		{text: "a: !!str 1"}, {text: "a: !!binary aGk="}, {text: "!x {a: 1}"}, {text: "!x [a]"},
		{text: "1: a"}, {text: "null: a"}, {text: "{a: 1, 'a': 2}"}, {text: "? [a]\n: b"},
		{text: "!"}, {text: "a: ! 1"}, {text: "a: b\n\n  c"},
	} {
		t.Run(test.text, func(t *testing.T) {
			tree, err := parse([]byte(test.text))
			if err != nil {
				t.Fatal(err)
			}
			if value, ok := decodePlain([]byte(test.text), tree); ok != (test.want != nil) || ok && !reflect.DeepEqual(value, test.want) {
				t.Errorf("decodePlain() = %#v, %t, want %#v", value, ok, test.want)
			}
		})
	}
}

type object = map[string]any

// The same for any text.
func FuzzDecodePlain(f *testing.F) {
	for _, text := range []string{
		"a: 1\nb: {c: [d, -e, /f, 10Gi, 0, -7, 'g', \"h\\n\"]}\n",
		"a: |+\n  b\n\n# c\nd: >\n e\n\n  f\n",
		"- a\n- # b\n  c: d\n-\n  - e\n",
		"\ufeffa: b\r\nc: \"d\\\n  e\"\n",
		"? a\n: b\n",
		"a: b #c\nd: e#f\n'g': {h: , i}\n",
		"a: - b\n\tc: d\n",
		"! a: ! \n",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		document := []byte(text)
		tree, err := parse(document)
		if err != nil || check(tree, 0) != nil {
			return
		}
		value, ok := decodePlain(document, tree)
		if !ok {
			return
		}
		want, err := decodeYAML11(document, tree)
		if err != nil || !reflect.DeepEqual(value, want) {
			t.Errorf("decodePlain() = %#v, want %#v, %v", value, want, err)
		}
	})
}
