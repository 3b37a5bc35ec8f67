package apitypes_test

import (
	"fmt"

	"github.com/krake-observer/krake-observer/pkg/apitypes"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// The server writes half a CPU as "500m", and another manager has put a container in front.
// The user does not have to name the types.
func ExampleTypes_Refine() {
	resources, _ := manifest.Decode([]byte(`
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {containers: [{name: web, resources: {limits: {cpu: 0.5}}}]}
---
spec: {containers: [{name: proxy}, {name: web, resources: {limits: {cpu: 500m}}}]}
`))
	desired, live := resources[0].(map[string]any), resources[1].(map[string]any)
	observed, _ := schema.Default(desired)
	for _, s := range []schema.Schema{observed, apitypes.BuiltIn().Refine(observed, desired)} {
		for _, difference := range s.Compare(desired, live) {
			fmt.Println(difference.Kind, difference.Path, difference.Cut)
		}
		fmt.Println("--")
	}
	// Output:
	// Changed spec.containers[0].name []
	// Changed spec.containers[0].resources []
	// TooLong spec.containers [1]
	// --
	// TooLong spec.containers [0]
	// --
}
