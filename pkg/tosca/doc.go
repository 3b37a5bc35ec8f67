// Package tosca translates TOSCA templates, and the archives that contain them (CSAR),
// into Kubernetes manifests: one for each node template, in their order.
//
//	tosca_definitions_version: tosca_simple_yaml_1_0
//	topology_template:
//	  inputs:
//	    copies: {type: integer, default: 3}
//	  node_templates:
//	    web:
//	      type: tosca.nodes.indigo.KubernetesObject
//	      properties:
//	        spec:
//	          concat:
//	          - "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  replicas:"
//	          - get_input: copies
//
// becomes the Deployment web with 3 replicas. A template without such a translation is
// refused, with file, line and path of each mistake:
//
//	tosca_definitions_version: tosca_simple_yaml_1_3 # neither 1_0 nor 1_2
//	topology_template:
//	  node_templates:
//	    web: {type: tosca.nodes.Compute} # no KubernetesObject
//
// # The language
//
// The property spec is a YAML text, or the resource itself as a mapping. The functions
// concat, get_input and get_property may compose the text. Get_attribute,
// get_operation_output and token are not supported. The value of an input is its default.
//
// In the list of a concat, get_input adds ONE BLANK before its text: "replicas:" and the
// input 3 become "replicas: 3", "x-" and the input web become "x- web". Existing
// templates rely on it. There is no blank at the top of spec, nor where get_property
// leads to a get_input. Inputs have the texts of Krake: True, 1.0, None (an input
// without default), ['a', 'b'].
//
// A mapping is the resource, and no function in it is evaluated.
//
// # Beyond Krake
//
// Krake's own translator accepts less, or crashes, where this package
//
//   - knows the type tosca.nodes.indigo.KubernetesObject without a definition, or with an
//     import of its public one (see [CustomTypes]), which is never fetched;
//   - keeps a mapping unchanged: a null stays null, and a newline a newline;
//   - resolves get_property within the node that has the property;
//   - reports unknown properties, nodes and attributes, inputs without type, and files
//     that are no mappings.
//
// This package also refuses what cannot be a resource: without apiVersion, kind or
// metadata.name, null, or a list. It supports only the two documented versions. YAML has
// the limits of [manifest.Decode]: no anchors, no duplicate keys.
//
// # Trust
//
// Templates and archives are not trusted. Time and memory are bounded, archives are read
// in memory and only as far as needed. Errors repeat no value, because it may be secret.
// All texts of a translation have at most [MaxBytes] together, and a text is
// nested at most [manifest.MaxDepth] deep.
//
// The package fetches nothing and knows no Application.
package tosca
