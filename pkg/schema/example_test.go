package schema_test

import (
	"encoding/json"
	"fmt"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

const song = `
apiVersion: music.example.com/v1
kind: Song
metadata: {name: top50}
spec: {title: Kilestbo, length: 181, voices: [alto, bass]}
`

// resource decodes the only resource of a text.
func resource(text string) map[string]any {
	resources, err := manifest.Decode([]byte(text))
	if err != nil {
		panic(err) // the text of an example
	}
	return resources[0].(map[string]any)
}

func printJSON(value any) {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // made of JSON
	}
	fmt.Println(string(text))
}

// Without a schema from the user, the whole manifest is observed.
func ExampleMangle() {
	set, findings := schema.Mangle([]any{resource(song)}, nil)
	fmt.Println(len(findings), "findings")
	printJSON(set.Documents()[0]["spec"])
	// Output:
	// 0 findings
	// {"length":null,"title":null,"voices":[null,null,{"observer_schema_list_max_length":2,"observer_schema_list_min_length":2}]}
}

// A field that is observed but not in the manifest keeps the value that the server sets first.
func ExampleSchema_LateInitialize() {
	set, _ := schema.Mangle([]any{resource(song)}, []any{resource(`
apiVersion: music.example.com/v1
kind: Song
metadata: {name: top50}
spec: {title: null, key: null}
`)})
	created := resource(`{spec: {title: Kilestbo, length: 181, key: C major}}`)
	desired := set[0].LateInitialize(resource(song), created)
	printJSON(desired["spec"])

	changed := resource(`{spec: {title: Kilestbo, length: 5, key: D minor}}`)
	printJSON(set[0].Patch(desired, changed))
	// Output:
	// {"key":"C major","length":181,"title":"Kilestbo","voices":["alto","bass"]}
	// [{"op":"replace","path":"/spec/key","value":"C major"}]
}

// The elements of a list are matched by a key that the user states. If the API's types declare
// the key, see [Schema.Align].
func Example_listKey() {
	desired := resource(`
apiVersion: music.example.com/v1
kind: Song
metadata: {name: top50}
spec: {parts: [{name: horn, beats: 3}]}
`)
	set, _ := schema.Mangle([]any{desired}, []any{resource(`
apiVersion: music.example.com/v1
kind: Song
metadata: {name: top50}
spec:
  parts:
  - {beats: null}
  - {observer_schema_list_min_length: 1, observer_schema_list_max_length: 0, observer_schema_list_key: name}
`)})
	live := resource(`{spec: {parts: [{name: drum, beats: 7}, {name: horn, beats: 4}]}}`)
	printJSON(set[0].Patch(desired, live))
	// Output:
	// [{"op":"replace","path":"/spec/parts/1/beats","value":3}]
}
