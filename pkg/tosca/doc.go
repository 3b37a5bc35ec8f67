// Package tosca translates templates of TOSCA, and the archives that hold them
// (CSAR), into Kubernetes manifests, one for each node template, in their order.
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
// becomes the Deployment web of 3 replicas. Refused is, with file, line and path of
// each mistake, what has no such translation:
//
//	tosca_definitions_version: tosca_simple_yaml_1_3 # neither 1_0 nor 1_2
//	topology_template:
//	  node_templates:
//	    web: {type: tosca.nodes.Compute} # no KubernetesObject
//
// # The language
//
// The property spec is a text of YAML, or the resource itself as a mapping. The text
// may be made by the functions concat, get_input and get_property; get_attribute,
// get_operation_output and token are not supported. Inputs have the value of their
// default, as nobody gives another one.
//
// In the list of a concat a get_input adds ONE BLANK before its text: "replicas:"
// and the input 3 make "replicas: 3", "x-" and the input web make "x- web".
// Existing templates are written for it. There is no blank at the top of spec, nor
// where get_property leads to a get_input. Texts of inputs are those that the
// reference has: True, 1.0, None (of an input without default), ['a', 'b'].
//
// In a mapping nothing is evaluated: it is the resource.
//
// # Beyond the reference
//
// Krake's own translator accepts less, or crashes, where this one
//
//   - knows the type tosca.nodes.indigo.KubernetesObject although nobody defines it,
//     or where its public definition is imported by URL (see [CustomTypes]), which is
//     never fetched;
//   - uses a mapping as it is: a null stays null, and a newline a newline;
//   - resolves get_property within the node whose property it is;
//   - gives errors for unknown properties, nodes and attributes, for inputs without
//     type, and for files that are no mappings.
//
// It is stricter where the reference lets pass what can be no resource: without
// apiVersion, kind or metadata.name, null, or a list. Only the two documented
// versions are taken. YAML is read as [manifest.Decode] reads it: no anchors, no
// duplicate keys.
//
// # Who writes templates
//
// Anybody: nothing here trusts them. Time and memory are bounded, archives are read
// in memory and only as far as they are needed, and errors repeat no value: it may be
// that of a Secret.
//
// The package fetches nothing and knows no Application.
package tosca
