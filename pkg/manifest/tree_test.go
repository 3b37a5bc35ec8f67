package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check"
)

func TestDecodeTree(t *testing.T) {
	tests := []struct{ why, text, want string }{
		{"fields have the lines of key and value, in the order of the text", "b:\n  c: 1\na: [x,\n  z]\n", "1{b@1: 2{c@2: 2=1} a@3: 3[3=x 4=z]}"},
		{"a block begins where its mark is", "a: |\n  x\nb: 1\n", "1{a@1: 1=x\n b@3: 3=1}"},
		{"JSON has lines too", "{\n\"b\": {\"c\": [1,\n2]},\n\"a\":\n null}", "1{b@2: 2{c@2: 2[2=1 3=2]} a@4: 5=<nil>}"},
		{"JSON has escapes that YAML lacks", `{"\ud83d\ude00": "\/", "a": {}, "b": []}`, "1{😀@1: 1=/ a@1: 1{} b@1: 1[]}"},
		{"a key that is no text as it is written comes last", "yes: {a: 1}\nb: 2\n", "1{b@2: 2=2 true@1: 1{a@1: 1=1}}"},
		{"two keys that look alike keep their values", "010: a\n'010': b\n", "1{010@1: 1=b 8@1: 1=a}"},
		{"the line --- at the beginning is no document", "---\na: 1\n", "2{a@2: 2=1}"},
		{"nothing is nil", "# nothing\n", "1=<nil>"},
		{"so is an empty document", "---\n", "2=<nil>"},
		{"a scalar is one", "x", "1=x"},
		{"a set is an object", "!!set {b, a}\n", "1{b@1: 1=<nil> a@1: 1=<nil>}"},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			tree, err := manifest.DecodeTree([]byte(test.text))
			check.Must(t, err)
			check.Equal(t, "tree", test.want, describe(tree))
		})
	}
}

func TestDecodeTreeRefuses(t *testing.T) {
	tests := []struct{ why, text, want string }{
		{"a second document", "a: 1\n---\nb: 2\n", "a further document"},
		{"an anchor", "a: &x 1\nb: *x\n", "line 1: anchors and aliases are not supported"},
		{"a key that is there twice", "a: 1\na: 2\n", `key "a" already set`},
		{"a key that is there twice, in JSON", `{"a": 1, "a": 2}`, "duplicate field"},
		{"digits that would be lost", "a: 99999999999999999999\n", "more digits than 64 bits hold"},
		{"what no walker could bear", strings.Repeat("[", 65) + strings.Repeat("]", 65), "nested deeper than 64"},
		{"what is too long", strings.Repeat("#", manifest.MaxBytes+1), "the maximum is 4194304"},
		{"what is no YAML", "a: b: c", "mapping values are not allowed"},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			tree, err := manifest.DecodeTree([]byte(test.text))
			check.Fails(t, "text", err, test.want)
			check.Equal(t, "tree beside the error", nil, tree)
		})
	}
}

// describe writes a tree with its lines.
func describe(tree *manifest.Tree) string {
	var parts []string
	switch tree.Value.(type) {
	case map[string]any:
		for _, field := range tree.Fields {
			parts = append(parts, fmt.Sprintf("%s@%d: %s", field.Name, field.KeyLine, describe(field.Tree)))
		}
		return fmt.Sprintf("%d{%s}", tree.Line, strings.Join(parts, " "))
	case []any:
		for _, item := range tree.Items {
			parts = append(parts, describe(item))
		}
		return fmt.Sprintf("%d[%s]", tree.Line, strings.Join(parts, " "))
	}
	return fmt.Sprintf("%d=%v", tree.Line, tree.Value)
}
