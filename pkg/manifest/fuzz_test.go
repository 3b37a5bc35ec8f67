package manifest_test

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check"
)

// Any text leads to a result that all walkers accept, and each time to the same: an agent
// repeats the computation of the webhook.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{
		"a: 1\n---\n- {b: [null, 1.5, yes]}\n",
		"{\"a\": {\"b\": [1, \"\\ud83d\\ude00\"]}}",
		"a: &x [*x]\n<<: {b: c}\n",
		"1: a\n'1': b\nnull: c\n",
		"a: !!binary aGk=\n? b\n: !x |2-\n   c\n",
		"\ufeffa: \x00\xff\n...\n--- x\r\n",
		"!!set {a, b}\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		first, err := manifest.Decode(text)
		if err != nil && first != nil {
			t.Errorf("a result beside the error %v", err)
		}
		for _, resource := range first {
			if got := depth(resource); got > manifest.MaxDepth {
				t.Errorf("nested %d levels deep", got)
			}
			runtime.DeepCopyJSONValue(resource) // panics on values that JSON does not have
			if object, ok := resource.(map[string]any); ok {
				if unpacked := manifest.Pack(object).Fields(); !reflect.DeepEqual(object, unpacked) {
					t.Errorf("packed and unpacked it is something else: %#v\n%#v", object, unpacked)
				}
			}
		}
		second, again := manifest.Decode(text)
		// go-cmp would double its time for each list within a list.
		if !reflect.DeepEqual(first, second) || check.Message(err) != check.Message(again) {
			t.Errorf("the second time it gives something else: %v, %v\n%v\n%v", err, again, first, second)
		}
	})
}

func depth(value any) int {
	deepest := 0
	switch value := value.(type) {
	case map[string]any:
		for _, field := range value {
			deepest = max(deepest, depth(field))
		}
	case []any:
		for _, item := range value {
			deepest = max(deepest, depth(item))
		}
	default:
		return 0
	}
	return deepest + 1
}
