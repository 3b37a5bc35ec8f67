package manifest_test

import (
	"fmt"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

func ExampleDecode() {
	resources, err := manifest.Decode([]byte(`
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: demo}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, resource := range resources {
		id, err := manifest.Identify(resource.(map[string]any))
		fmt.Println(id, err)
	}
	// Output:
	// v1 ConfigMap settings <nil>
	// v1 Service demo/web <nil>
}

// Text that grows by expansion is refused before the expansion.
func ExampleDecode_invalid() {
	_, err := manifest.Decode([]byte("a: &anchor [1, 2]\nb: *anchor\n"))
	fmt.Println(err)
	// Output:
	// document 1: line 1: anchors and aliases are not supported: write the value out
}
