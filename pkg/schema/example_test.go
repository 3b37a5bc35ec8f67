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

// Every mistake is reported with its place and its remedy.
func ExampleMangle_invalid() {
	_, findings := schema.Mangle([]any{resource(song)}, []any{resource(`
apiVersion: music.example.com/v1
kind: Song
metadata: {name: top50}
spec: {title: Kilestbo, voices: [null]}
`)})
	for _, finding := range findings {
		fmt.Printf("%s: %s\n", finding.Code, finding)
	}
	// Output:
	// value-not-null: spec.observer_schema[0].spec.title: Value of 'title' is not null: an observed value is written as null
	// control-missing: spec.observer_schema[0].spec.voices: Special list control dictionary not found: end the list with {observer_schema_list_min_length: 0, observer_schema_list_max_length: 0}
}

// Another client has changed an observed field, and added one that the manifest does not ask
// for.
func ExampleSchema_Compare() {
	desired := resource(song)
	observed, _ := schema.Default(desired)
	live := resource(`{spec: {title: Lelavabo, length: 181, voices: [alto, bass], mood: merry}}`)
	for _, difference := range observed.Compare(desired, live) {
		fmt.Printf("%s %s: %v, want %v\n", difference.Kind, difference.Path, difference.Have, difference.Want)
	}
	// Output:
	// Changed spec.title: Lelavabo, want Kilestbo
}

func ExampleSchema_Patch() {
	desired := resource(song)
	observed, _ := schema.Default(desired)
	live := resource(`{metadata: {resourceVersion: "7"}, spec: {title: Lelavabo, length: 181, voices: [alto, bass, tenor]}}`)
	printJSON(observed.Patch(desired, live).Guard("7"))
	// Output:
	// [{"op":"replace","path":"/metadata/resourceVersion","value":"7"},{"op":"replace","path":"/spec/title","value":"Kilestbo"},{"op":"remove","path":"/spec/voices/2"}]
}

func ExampleSchema_Project() {
	desired := resource(song)
	observed, _ := schema.Default(desired)
	live := resource(`{spec: {title: Kilestbo, mood: merry, voices: [alto, bass, tenor]}, status: {charts: 3}}`)
	printJSON(observed.Project(desired, live)["spec"])
	// Output:
	// {"title":"Kilestbo","voices":["alto","bass",{"observer_schema_list_current_length":3}]}
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

// If the server's answer shows that it writes a value in another form, the other form is no
// drift.
func ExampleSchema_Accept() {
	desired := resource(song)
	observed, _ := schema.Default(desired)
	answer := resource(`{spec: {title: Kilestbo, length: "3:01", voices: [alto, bass]}}`)
	fmt.Println(len(observed.Compare(desired, answer)), "difference")

	accepted := observed.Accept(observed.Forms(desired, answer))
	fmt.Println(len(accepted.Compare(desired, answer)), "differences")
	// Output:
	// 1 difference
	// 0 differences
}

// A field that was removed from the manifest, and so from the schema, is removed once. A value
// that another client has changed meanwhile stays, and a learned value is the server's.
func ExampleSchema_Released() {
	before := resource(song)
	observed, _ := schema.Default(before)
	live := resource(`{spec: {title: Kilestbo, length: 181, voices: [alto, bass], mood: merry}}`)
	former := observed.Project(before, live)

	desired := resource(`
apiVersion: music.example.com/v1
kind: Song
metadata: {name: top50}
spec: {title: Kilestbo}
`)
	present, _ := schema.Default(desired)
	fields, _ := present.Released(desired, former, nil, live)
	printJSON(fields.Patch())

	changed := resource(`{spec: {title: Kilestbo, length: 5, voices: [alto, bass, tenor]}}`)
	fields, _ = present.Released(desired, former, nil, changed)
	fmt.Println(len(fields), "fields")
	// Output:
	// [{"op":"remove","path":"/spec/length"},{"op":"remove","path":"/spec/voices"}]
	// 0 fields
}

// A Service gets its node ports from the server. When it becomes a ClusterIP, it must not keep
// them.
func ExampleSchema_Forget() {
	written := resource(`{apiVersion: v1, kind: Service, metadata: {name: echo}, spec: {type: ClusterIP, ports: [{port: 80}]}}`)
	set, _ := schema.Mangle([]any{written}, []any{resource(`
apiVersion: v1
kind: Service
metadata: {name: echo}
spec:
  type: null
  ports:
  - {port: null, nodePort: null}
  - {observer_schema_list_min_length: 1, observer_schema_list_max_length: 1}
`)})
	live := resource(`{spec: {type: NodePort, ports: [{port: 80, nodePort: 31000}]}}`)
	desired := set[0].LateInitialize(written, live)

	forgotten, removals := set[0].Forget(desired, written, live, "spec", "ports", "nodePort")
	printJSON(forgotten["spec"])
	printJSON(append(removals.Patch(), set[0].Patch(forgotten, live)...))
	// Output:
	// {"ports":[{"port":80}],"type":"ClusterIP"}
	// [{"op":"remove","path":"/spec/ports/0/nodePort"},{"op":"replace","path":"/spec/type","value":"ClusterIP"}]
}
