package habitat_test

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/pkg/habitat"
)

func ExampleParse() {
	h, mistakes := habitat.Parse(map[string]any{
		"metadata":      map[string]any{"name": "greeter", "namespace": "shop"},
		"customVersion": "v1beta2",
		"spec": map[string]any{"v1beta2": map[string]any{
			"image":   "registry.example/greeter:1",
			"count":   int64(2),
			"service": map[string]any{"name": "greeter", "topology": "standalone"},
		}},
	})
	if len(mistakes) > 0 {
		fmt.Println(mistakes.ToAggregate())
		return
	}
	text, err := yaml.Marshal(h.Workload(habitat.DefaultFilesImage)["metadata"])
	fmt.Println(string(text), err)
	// Output:
	// labels:
	//   habitat: "true"
	//   habitat-name: greeter
	// name: greeter
	// namespace: shop
	//  <nil>
}

// All mistakes are reported with their places.
func ExampleParse_invalid() {
	_, mistakes := habitat.Parse(map[string]any{
		"metadata":      map[string]any{"name": "greeter", "namespace": "shop"},
		"customVersion": "v1beta2",
		"spec": map[string]any{
			"image": "registry.example/greeter:1",
			"v1beta2": map[string]any{
				"service": map[string]any{"name": "a b", "topology": "Leader"},
			},
		},
	})
	for _, mistake := range mistakes {
		fmt.Println(mistake)
	}
	// Output:
	// spec.image: Forbidden: customVersion v1beta2 has it below spec.v1beta2: move it there
	// spec.v1beta2.image: Required value: the image of the container, without white space
	// spec.v1beta2.service.name: Invalid value: "a b": it has to be the name of the service, of letters, digits, '_', '.' and '-', and neither . nor ..
	// spec.v1beta2.service.topology: Invalid value: "Leader": it has to be standalone or leader
}
