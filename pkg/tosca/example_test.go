package tosca_test

import (
	"encoding/json"
	"fmt"

	"github.com/krake-observer/krake-observer/pkg/tosca"
)

func ExampleTranslate() {
	resources, err := tosca.Translate([]byte(`
tosca_definitions_version: tosca_simple_yaml_1_0
topology_template:
  inputs:
    copies: {type: integer, default: 3}
  node_templates:
    web:
      type: tosca.nodes.indigo.KubernetesObject
      properties:
        spec:
          concat:
          - |-
            apiVersion: apps/v1
            kind: Deployment
            metadata: {name: web}
            spec:
              replicas:
          - get_input: copies # behind one blank
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := json.Marshal(resources)
	fmt.Println(string(text), err)
	// Output:
	// [{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":3}}] <nil>
}

// All mistakes are reported with their places.
func ExampleTranslate_invalid() {
	_, err := tosca.Translate([]byte(`tosca_definitions_version: tosca_simple_yaml_1_3
topology_template:
  node_templates:
    web: {type: tosca.nodes.Compute}
`))
	fmt.Println(err)
	// Output:
	// line 1: tosca_definitions_version: the version is not supported: write tosca_simple_yaml_1_0 or tosca_simple_yaml_1_2
	// line 4: topology_template.node_templates.web: the type of a node template is tosca.nodes.indigo.KubernetesObject: no other is supported, nor are types derived from it
}
