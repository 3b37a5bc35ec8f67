package tosca_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/tosca"
	"github.com/krake-observer/krake-observer/test/check"
)

const (
	version = "tosca_definitions_version: tosca_simple_yaml_1_0\n"
	// head is the beginning of a ConfigMap, within double quotes of YAML.
	head = `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n`
	// plain is the ConfigMap without data.
	plain = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
)

// typed defines the type with further properties, in YAML's flow style.
func typed(properties string) string {
	return "data_types:\n  tosca.nodes.indigo.KubernetesObject:\n    derived_from: tosca.nodes.Root\n" +
		"    properties: {spec: {type: string, required: true}" + properties + "}\n"
}

// nodes returns a topology of node templates a, b, and so on, with these properties.
func nodes(properties ...string) string { return withInputs("{}", properties...) }

func withInputs(inputs string, properties ...string) string {
	var text strings.Builder
	text.WriteString("topology_template:\n  inputs: " + inputs + "\n  node_templates:\n")
	for i, of := range properties {
		name := string(rune('a' + i%26))
		if i >= 26 {
			name += strconv.Itoa(i)
		}
		text.WriteString("    " + name + ":\n      type: tosca.nodes.indigo.KubernetesObject\n      properties: " + of + "\n")
	}
	return text.String()
}

// spec returns a node template's properties with a text as its spec.
func spec(more string) string { return `{spec: "` + head + more + `"}` }

// parts returns properties whose spec is a concat of head and more, which begins with a comma.
func parts(more string) string { return `{spec: {concat: ["` + head + `"` + more + `]}}` }

// input returns a template with one input x, whose text is the value of data.k.
func input(definition string) string {
	return version + typed("") + withInputs("{x: "+definition+"}", parts(`, "data: {k:", {get_input: x}, "}"`))
}

type variant struct {
	why, template string
	// want are the manifests. err is a part of the error.
	want, err string
}

func templates() []variant {
	return append(append(append(languageTemplates(), typeTemplates()...), functionTemplates()...), hostileTemplates()...)
}

func languageTemplates() []variant {
	return []variant{
		{"a text is the resource", version + typed("") + nodes(spec("")), plain, ""},
		{"so it is in version 1.2", "tosca_definitions_version: tosca_simple_yaml_1_2\n" + typed("") + nodes(spec("")), plain, ""},
		{"version 1.1 is refused", "tosca_definitions_version: tosca_simple_yaml_1_1\n" + nodes(spec("")), "",
			"line 1: tosca_definitions_version: the version is not supported: write tosca_simple_yaml_1_0 or tosca_simple_yaml_1_2"},
		{"so is 1.3", "tosca_definitions_version: tosca_simple_yaml_1_3\n" + nodes(spec("")), "", "the version is not supported"},
		{"and the profiles of Krake that its documentation lacks", "tosca_definitions_version: tosca_simple_profile_for_nfv_1_0_0\n" + nodes(spec("")), "", "the version is not supported"},
		{"a version that is no text", "tosca_definitions_version: [tosca_simple_yaml_1_0]\n" + nodes(spec("")), "", "the version is not supported"},
		{"no version", nodes(spec("")), "", "line 1: missing required field tosca_definitions_version"},
		{"an unknown key at the top", version + "nodes: {}\n" + nodes(spec("")), "", "line 2: nodes: unknown field: a template has tosca_definitions_version, "},
		{"metadata are known", version + "metadata: {template_name: x}\ndescription: y\n" + nodes(spec("")), plain, ""},
		{"an unknown key of the topology", version + "topology_template:\n  node_template: {}\n", "", "line 3: topology_template.node_template: unknown field: a topology template has"},
		{"outputs, groups and policies are not looked at", version + nodes(spec("")) + "  outputs: {o: {value: {get_attribute: [a, x]}}}\n  policies: []\n  groups: {}\n", plain, ""},
		{"no topology", version, "", "TOSCA does not contain any topology template"},
		{"a topology that is no mapping", version + "topology_template: [a]\n", "", "line 2: topology_template: a list, and a mapping is wanted"},
		{"no node templates", version + "topology_template: {inputs: {}}\n", "", "TOSCA does not contain any node template"},
		{"empty node templates", version + "topology_template: {node_templates: {}}\n", "", "TOSCA does not contain any node template"},
		{"node templates that are no mapping", version + "topology_template: {node_templates: [a]}\n", "", "topology_template.node_templates: a list, and a mapping is wanted"},
		{"manifests are in the order of the node templates", version + "topology_template:\n  node_templates:\n" +
			"    z: {type: tosca.nodes.indigo.KubernetesObject, properties: {spec: \"" + head + "data: {n: z}\"}}\n" +
			"    a: {type: tosca.nodes.indigo.KubernetesObject, properties: {spec: \"" + head + "data: {n: a}\"}}\n",
			plain + "data: {n: z}\n---\n" + plain + "data: {n: a}\n", ""},
		{"a template may be JSON", `{"tosca_definitions_version": "tosca_simple_yaml_1_0", "topology_template": {"node_templates": {"b":
			{"type": "tosca.nodes.indigo.KubernetesObject", "properties": {"spec": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "\ud83d\ude00"}}}}}}}`,
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 😀}\n", ""},
		{"a text that begins with --- is one document", version + nodes(`{spec: "---\n`+head+`"}`), plain, ""},
		{"two documents are not", version + nodes(spec(`---\n`+head)), "", "topology_template.node_templates.a.properties.spec: the text is no resource: more than one YAML document"},
		{"nor is an empty second one", version + nodes(spec(`---\n`)), "", "more than one YAML document"},
		{"an empty spec", version + nodes(`{spec: ""}`), "", "spec: TOSCA node property `spec` must not be empty."},
		{"a spec of blanks", version + nodes(`{spec: "  \n "}`), "", "TOSCA node property `spec` must not be empty."},
		{"a spec of comments", version + nodes(`{spec: "# later"}`), "", "TOSCA node property `spec` must not be empty."},
		{"a null", version + nodes(`{spec: null}`), "", "TOSCA node property `spec` must not be empty."},
		{"the text of a null", version + nodes(`{spec: "null"}`), "", "TOSCA node property `spec` must not be empty."},
		{"a scalar is no resource", version + nodes(`{spec: "some text"}`), "", "spec: a text, and a resource is wanted"},
		{"nor is a number", version + nodes(`{spec: 5}`), "", "an integer, and a resource is wanted"},
		{"nor a list", version + nodes(`{spec: "- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: a}\n"}`), "", "a list, and a resource is wanted"},
		{"nor a mapping without the fields of one", version + nodes(`{spec: "apiVersion: v1\nmetadata: {}\n"}`), "", "line 7: topology_template.node_templates.a.properties.spec: the resource lacks kind, metadata.name"},
		{"a text that is no YAML", version + nodes(`{spec: "a: b: c"}`), "", "the text is no resource: parse YAML: yaml: line 1: mapping values are not allowed"},
		{"a mapping is the resource, unchanged", version + nodes(`{spec: {apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: null}, data: {t: "two\nlines", q: "it's", n: "1"}, immutable: true}}`),
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: null}\ndata: {t: \"two\\nlines\", q: \"it's\", n: '1'}\nimmutable: true\n", ""},
		{"functions are not evaluated in it", version + withInputs(`{x: {type: string, default: b}}`, `{spec: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: {get_input: x}}}}`),
			plain + "data: {k: {get_input: x}}\n", ""},
		{"a mapping without the fields of a resource", version + nodes(`{spec: {}}`), "", "the resource lacks apiVersion, kind, metadata.name"},
		{"a template that is a list", "- a\n", "", "line 1: a list, and a mapping is wanted"},
		{"a template that is a text", "just a text", "", "line 1: a text, and a mapping is wanted"},
		{"nothing at all", "", "", "line 1: null, and a mapping is wanted"},
		{"a template of two documents", version + nodes(spec("")) + "---\na: b\n", "", "more than one YAML document"},
		{"no YAML", "a: b: c\n", "", "parse YAML: yaml: line 1: mapping values are not allowed"},
		{"a key that is there twice", version + version + nodes(spec("")), "", `key "tosca_definitions_version" already set`},
	}
}

func typeTemplates() []variant {
	object := "  tosca.nodes.indigo.KubernetesObject:\n    derived_from: "
	return []variant{
		{"the type is known to those who do not define it", version + nodes(spec("")), plain, ""},
		{"and to those who import its public definition", version + "imports: [{ec3_custom_types: " + tosca.CustomTypes + "}]\n" + nodes(spec("")), plain, ""},
		{"in whatever form", version + "imports: [" + tosca.CustomTypes + ", {file: " + tosca.CustomTypes + "}, {t: {file: " + tosca.CustomTypes + "}}]\n" + nodes(spec("")), plain, ""},
		{"it may be a node type", version + "node_types:\n" + object + "tosca.nodes.Root\n    properties: {spec: {type: string}}\n" + nodes(spec("")), plain, ""},
		{"a derived type is not supported", version + "node_types: {my.Object: {derived_from: tosca.nodes.indigo.KubernetesObject}}\n" +
			"topology_template: {node_templates: {a: {type: my.Object, properties: {spec: x}}}}\n", "",
			"line 3: topology_template.node_templates.a: the type of a node template is tosca.nodes.indigo.KubernetesObject"},
		{"nor is another one, which refuses the whole template", version + nodes(spec("")) + "    host: {type: tosca.nodes.Compute}\n", "", "topology_template.node_templates.host: the type of a node template is"},
		{"nor none", version + "topology_template: {node_templates: {a: {properties: {spec: x}}}}\n", "", "the type of a node template is"},
		{"an unknown key of a node template", version + nodes(spec("")) + "      propertys: {}\n", "", "topology_template.node_templates.a.propertys: unknown field: a node template has type, "},
		{"a node template that is a text", version + "topology_template: {node_templates: {a.b: x}}\n", "", `topology_template.node_templates["a.b"]: a text, and a mapping with type and properties is wanted`},
		{"an unknown property", version + nodes(`{spec: x, host: y}`), "", "topology_template.node_templates.a.properties.host: unknown property: the type has spec"},
		{"no spec", version + nodes(`{}`), "", "line 5: topology_template.node_templates.a: missing required property spec"},
		{"no properties", version + nodes(``), "", "missing required property spec"},
		{"a spec that is not required, and not there", version + "data_types:\n" + object + "tosca.nodes.Root\n    properties: {spec: {type: string, required: false}}\n" + nodes(`{}`), "", "`spec` must not be empty"},
		{"a type without spec has no such property", version + "data_types:\n" + object + "tosca.nodes.Root\n" + nodes(spec("")), "", "unknown property: the type has "},
		{"a default of spec", version + "data_types:\n" + object + "tosca.nodes.Root\n    properties: {spec: {type: string, default: \"" + head + "\"}}\n" + nodes(`{}`), plain, ""},
		{"a default that is a mapping", version + "data_types:\n" + object + "tosca.nodes.Root\n    properties: {spec: {type: string, default: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}}\n" + nodes(`{}`), plain, ""},
		{"further properties, with defaults", version + typed(", host: {type: string, default: here}, port: {type: integer, required: false}") +
			nodes(parts(`, "data: {k: ", {get_property: [SELF, host]}, "}"`)), plain + "data: {k: here}\n", ""},
		{"one that is required", version + typed(", host: {type: string}") + nodes(spec("")), "", "missing required property host"},
		{"properties are inherited, and overridden", version + "node_types:\n" + object + "my.Base\n    properties: {host: {type: string, default: mine}}\n" +
			"  my.Base: {derived_from: tosca.nodes.Root, properties: {spec: {type: string}, host: {type: string, default: base}, port: {type: string, default: '80'}}}\n" +
			nodes(parts(`, "data: {k: ", {get_property: [SELF, host]}, {get_property: [SELF, port]}, "}"`)), plain + "data: {k: mine80}\n", ""},
		{"from a type that nobody defines", version + "node_types:\n" + object + "my.Base\n    properties: {spec: {type: string}}\n" + nodes(spec("")), "", `derived_from: "my.Base" is not a valid type`},
		{"from itself", version + "node_types:\n" + object + "my.Base\n    properties: {spec: {type: string}}\n  my.Base: {derived_from: tosca.nodes.indigo.KubernetesObject}\n" + nodes(spec("")), "",
			`node_types["my.Base"].derived_from: the type tosca.nodes.indigo.KubernetesObject is derived from itself`},
		{"a type that is a text", version + "node_types: {tosca.nodes.indigo.KubernetesObject: x}\n" + nodes(spec("")), "", "a text, and a mapping is wanted"},
		{"a property without type", version + typed(", host: {default: x}") + nodes(spec("")), "", "properties.host: missing required field type"},
		{"a property that is a text", version + typed(", host: string") + nodes(spec("")), "", "properties.host: a text, and a mapping with a type is wanted"},
		{"required is a boolean", version + typed(", host: {type: string, required: maybe}") + nodes(spec("")), "", "host.required: a text, and true or false is wanted"},
		{"a value of another type", version + typed(", port: {type: integer}") + nodes(`{spec: x, port: eighty}`), "", "properties.port: a text, and the type is integer"},
		{"a value of a type that nobody checks", version + typed(", port: {type: my.Port, required: false}") + nodes(`{spec: "`+head+`", port: {a: 1}}`), plain, ""},
		{"a number becomes a text where that is the type", version + typed(", port: {type: string}") + nodes(`{port: 80, spec: {concat: ["`+head+`data: {k: '", {get_property: [SELF, port]}, "'}"]}}`), plain + "data: {k: '80'}\n", ""},
		{"types that are a list", version + "node_types: []\n" + nodes(spec("")), "", "node_types: a list, and a mapping is wanted"},
		{"an import of a file", version + "imports: [types.yaml]\n" + nodes(spec("")), "", "line 2: imports[0]: a template that stands alone imports nothing: write the types into it, or leave the import out"},
		{"an import of a URL", version + "imports: [{t: 'https://example.org/types.yaml'}]\n" + nodes(spec("")), "", "imports[0].t: a template that stands alone imports nothing"},
		{"an import of the agent's disk", version + "imports: ['file:///etc/passwd']\n" + nodes(spec("")), "", "a template that stands alone imports nothing"},
		{"imports without any", version + "imports: []\n" + nodes(spec("")), "", "imports: a list of files is wanted"},
		{"imports that are a mapping", version + "imports: {a: b}\n" + nodes(spec("")), "", "imports: a list of files is wanted"},
		{"an import that is a number", version + "imports: [5]\n" + nodes(spec("")), "", "imports[0]: an integer is no import: write FILE, or NAME: FILE"},
		{"two imports of a name", version + "imports: [{t: " + tosca.CustomTypes + "}, {t: " + tosca.CustomTypes + "}]\n" + nodes(spec("")), "", "imports[1].t: a second import of this name"},
	}
}

func functionTemplates() []variant {
	host := ", host: {type: string, required: false, default: here}"
	things := ", things: {type: list, default: [one, {get_input: x}]}, map: {type: map, default: {k: {l: [deep]}}}, five: {type: integer, default: 5}"
	one := "{x: {type: string, default: eu}}"
	data := func(property string) string { return parts(`, "data: {k: ", ` + property + `, "}"`) }
	k := func(value string) string { return plain + "data: {k: " + value + "}\n" }
	return []variant{
		{"texts are put together", version + nodes(parts(`, "da", "ta: {}"`)), plain + "data: {}\n", ""},
		{"a concat in a concat", version + nodes(parts(`, {concat: ["data: ", {concat: ["{}"]}]}`)), plain + "data: {}\n", ""},
		{"a concat of something that is no list", version + nodes(`{spec: {concat: "`+head+`"}}`), plain, ""},
		{"a concat of a function that is no list", version + typed(", t: {type: string, default: \""+head+"\"}") + nodes(`{spec: {concat: {get_property: [SELF, t]}}}`), plain, ""},
		{"an empty concat", version + nodes(`{spec: {concat: []}}`), "", "spec.concat: concat takes at least one text"},
		{"a concat of a number", version + nodes(parts(", 5")), "", "spec.concat[1]: an integer, and concat takes texts: put it in quotes"},
		{"of a boolean", version + nodes(parts(", true")), "", "spec.concat[1]: a boolean, and concat takes texts"},
		{"of a null", version + nodes(parts(", null")), "", "spec.concat[1]: null, and concat takes texts"},
		{"of a mapping that is no function", version + nodes(parts(", {a: b}")), "", "spec.concat[1]: a mapping, and concat takes texts"},
		{"an input has one blank before it", version + withInputs("{x: {type: integer, default: 3}}", parts(`, "data: {k:", {get_input: x}, "}"`)), k("3"), ""},
		{"wherever it stands in a concat", version + withInputs(one, parts(`, "data: {k: 'x-", {get_input: x}, "-y'}"`)), k("x- eu-y"), ""},
		{"also in an inner one", version + withInputs(one, parts(`, "data: {k: 'x-", {concat: [{get_input: x}]}, {concat: {get_input: x}}, "'}"`)), k("'x- eu eu'"), ""},
		{"also if it is written as a list", version + withInputs(one, parts(`, "data: {k: 'x-", {get_input: [x]}, "'}"`)), k("'x- eu'"), ""},
		{"but none at the top of spec", version + withInputs(`{x: {type: string, default: " `+head+`"}}`, `{spec: {get_input: x}}`), "", "the text is no resource"},
		{"where it is the very text", version + withInputs(`{x: {type: string, default: "`+head+`"}}`, `{spec: {get_input: x}}`), plain, ""},
		{"and none through get_property", version + typed(host) + withInputs(one, `{host: {get_input: x}, spec: {concat: ["`+head+`data: {k: 'x-", {get_property: [SELF, host]}, "'}"]}}`), k("x-eu"), ""},
		{"a spec that is an input of a mapping", version + withInputs(`{x: {type: map, default: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: {get_input: x}}}}}`, `{spec: {get_input: x}}`), k("{get_input: x}"), ""},
		{"an unknown input at the top", version + nodes(`{spec: {get_input: z}}`), "", "spec.get_input: unknown input: topology_template.inputs has none of this name"},
		{"in a concat", version + nodes(parts(", {get_input: z}")), "", "spec.concat[1].get_input: unknown input"},
		{"in a property that nobody asks for", version + typed(host) + nodes(`{host: {get_input: z}, spec: "`+head+`"}`), "", "properties.host.get_input: unknown input"},
		{"of two arguments", version + withInputs(one, parts(", {get_input: [x, z]}")), "", "a list is no name"},

		{"a boolean is written as Python does", input("{type: boolean, default: true}"), k("true"), ""},
		{"and so are texts of it", version + withInputs("{x: {type: boolean, default: false}}", parts(`, "data: {k: 'x", {get_input: x}, "'}"`)), k("x False"), ""},
		{"an integer", input("{type: integer, default: -7}"), k("-7"), ""},
		{"an integer in quotes", input("{type: integer, default: '7'}"), k("7"), ""},
		{"a float", input("{type: float, default: 0.5}"), k("0.5"), ""},
		{"a whole float", version + withInputs("{x: {type: float, default: 2.0}}", parts(`, "data: {k: 'x", {get_input: x}, "'}"`)), k("x 2.0"), ""},
		{"a list", version + withInputs("{x: {type: list, default: [a, 1, true, null, \"it's\", 1.5, [], {}]}}", parts(`, "data: {k: \"", {get_input: x}, "\"}"`)), "", "the text is no resource"},
		{"a text with all that has to be escaped", input(`{type: list, default: ["\a\b\t\n\v\f\r\e\"'\\ \x7f\N\_\L\P\uFEFF\U000E0001 ä 😀"]}`), k(`["\a\b\t\n\v\f\r\e\"'\\ \x7f\N\_\L\P\uFEFF\U000E0001 ä 😀"]`), ""},
		{"floats large and small", version + withInputs("{x: {type: list, default: [1.0e+300, 1.5e-7, 123456789.5, -0.25]}}", parts(`, "data: {k: >-\n  x", {get_input: x}, "\n}"`)), "", "the text is no resource"},
		{"floats are written as Python does", version + withInputs("{x: {type: list, default: [1.5e+300, 1.5e-7, 123456789.5, -0.25]}}", `{spec: {concat: ["`+head+`data:\n  k: |-\n   ", {get_input: x}]}}`), k(`"[1.5e+300, 1.5e-07, 123456789.5, -0.25]"`), ""},
		{"a list is read again as it was", input("{type: list, default: [a, 1, true, null, \"it's\", \"a\\nb\", '\\', 1.5, [], {b: c, a: d}]}"), k("[a, 1, true, null, \"it's\", \"a\\nb\", '\\', 1.5, [], {b: c, a: d}]"), ""},
		{"and written as Python does", version + withInputs("{x: {type: list, default: [a, 1, true]}}", parts(`, "data: {k: >-\n  x", {get_input: x}, "\n }"`)), "", "the text is no resource"},
		{"a mapping, in its order", version + withInputs("{x: {type: map, default: {z: 1, a: b}}}", `{spec: {concat: ["`+head+`data:\n  k: |-\n   ", {get_input: x}]}}`), k(`"{'z': 1, 'a': 'b'}"`), ""},
		{"no default is None", input("{type: string}"), k("None"), ""},
		{"an empty text is one", input("{type: string, default: ''}"), k("null"), ""},
		{"a text that is none in YAML", input("{type: string, default: 'a: b'}"), "", "the text is no resource: parse YAML"},
		{"a default of another type", input("{type: integer, default: many}"), "", "topology_template.inputs.x.default: a text, and the type is integer"},
		{"a number for a text", input("{type: string, default: 5}"), "", "an integer, and the type is string"},
		{"a list for a mapping", input("{type: map, default: []}"), "", "a list, and the type is map"},
		{"a mapping for a list", input("{type: list, default: {}}"), "", "a mapping, and the type is list"},
		{"a number for a boolean", input("{type: boolean, default: 1}"), "", "an integer, and the type is boolean"},
		{"a text for a float", input("{type: float, default: '1'}"), "", "a text, and the type is float"},
		{"a text for a number", input("{type: number, default: '1.5'}"), k("1.5"), ""},
		{"constraints are not looked at", input("{type: integer, default: 3, constraints: [{greater_than: 5}], description: x, required: true}"), k("3"), ""},
		{"an input without type", input("{default: x}"), "", "topology_template.inputs.x: an input has a type: one of string, integer, "},
		{"of an unknown one", input("{type: my.Type, default: x}"), "", "an input has a type"},
		{"an input that is a text", input("web"), "", "topology_template.inputs.x: a text, and a mapping with type and default is wanted"},
		{"inputs that are a list", version + withInputs("[x]", spec("")), "", "topology_template.inputs: a list, and a mapping is wanted"},
		{"of a type that nobody checks", input("{type: scalar-unit.size, default: 5 MB}"), k("5 MB"), ""},

		{"a property of the node itself", version + typed(host) + nodes(data("{get_property: [SELF, host]}")), k("here"), ""},
		{"of another node", version + typed(host) + nodes(data("{get_property: [b, host]}"), `{host: there, spec: "`+head+`"}`), k("there") + "---\n" + plain, ""},
		{"of another one that asks another one", version + typed(host) + withInputs(one, data("{get_property: [b, host]}"), `{host: {get_property: [c, host]}, spec: "`+head+`"}`, `{host: {get_input: x}, spec: "`+head+`"}`),
			k("eu") + "---\n" + plain + "---\n" + plain, ""},
		{"SELF is the node whose property it is", version + typed(host+", own: {type: string, default: {concat: [my-, {get_property: [SELF, host]}]}}") +
			nodes(data("{get_property: [b, own]}"), `{host: there, spec: "`+head+`"}`), k("my-there") + "---\n" + plain, ""},
		{"an item of a list", version + typed(things) + withInputs(one, data("{get_property: [SELF, things, 0]}")), k("one"), ""},
		{"one that is an input", version + typed(things) + withInputs(one, data("{get_property: [SELF, things, '1']}")), k("eu"), ""},
		{"what is deep in a mapping", version + typed(things) + withInputs(one, data("{get_property: [SELF, map, k, l, 0]}")), k("deep"), ""},
		{"in the mapping of an input", version + typed(", m: {type: map, default: {get_input: m}}") + withInputs("{m: {type: map, default: {a: {concat: [b]}, '1': c}}}", data("{get_property: [SELF, m, 1]}")), k("c"), ""},
		{"in which functions are no functions", version + typed(", m: {type: map, default: {get_input: m}}") + withInputs("{m: {type: map, default: {a: {concat: [b]}}}}", data("{get_property: [SELF, m, a]}")), "", "a mapping, and concat takes texts"},
		{"an index too far", version + typed(things) + withInputs(one, data("{get_property: [SELF, things, 2]}")), "", "get_property[2]: the property has a list of 2 items there"},
		{"an index below", version + typed(things) + withInputs(one, data("{get_property: [SELF, things, -1]}")), "", "a list of 2 items there"},
		{"an index that is none", version + typed(things) + withInputs(one, data("{get_property: [SELF, things, first]}")), "", "a list of 2 items there"},
		{"a key that is not there", version + typed(things) + withInputs(one, data("{get_property: [SELF, map, z]}")), "", "the property has no such key"},
		{"a key of a text", version + typed(host) + nodes(data("{get_property: [SELF, host, z]}")), "", "the property has a text there, which has neither items nor keys"},
		{"an integer in a concat", version + typed(things) + withInputs(one, data("{get_property: [SELF, five]}")), "", "spec.concat[2]: an integer, and concat takes texts"},
		{"an unknown property", version + nodes(data("{get_property: [SELF, z]}")), "", "get_property[1]: unknown property: the node template has none of this name"},
		{"an unknown node", version + nodes(data("{get_property: [z, spec]}")), "", "get_property[0]: unknown node template: write SELF, or the name of one"},
		{"a name of a property that is none", version + nodes(data("{get_property: [SELF, 5]}")), "", "get_property[1]: an integer is no name"},
		{"a chain of properties that is too long", version + typed(chain(102)) + nodes(data("{get_property: [SELF, p0]}")), "", "get_property leads to get_property more than 100 times"},
		{"one that is not", version + typed(chain(99)) + nodes(data("{get_property: [SELF, p0]}")), k("end"), ""},
		{"a host, of which nothing is known", version + nodes(data("{get_property: [HOST, spec]}")), "", "unknown node template"},
		{"too few arguments", version + nodes(data("{get_property: [SELF]}")), "", "get_property takes a list"},
		{"an argument that is no list", version + nodes(data("{get_property: host}")), "", "get_property takes a list"},
		{"the spec of another node", version + nodes(`{spec: {get_property: [b, spec]}}`, spec("")), plain + "---\n" + plain, ""},
		{"that is a mapping", version + nodes(`{spec: {get_property: [b, spec]}}`, `{spec: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}}`), plain + "---\n" + plain, ""},
		{"a property of itself", version + nodes(`{spec: {get_property: [SELF, spec]}}`), "", "spec.get_property: the property refers to itself"},
		{"by way of others", version + typed(host) + nodes(`{host: {get_property: [b, host]}, spec: {concat: [{get_property: [SELF, host]}]}}`, `{host: {concat: [x, {get_property: [a, host]}]}, spec: "`+head+`"}`), "", "host.concat[1].get_property: the property refers to itself"},
		{"a name that is none to YAML", version + withInputs("{n: {type: string, default: x}}", parts(", {get_input: n}")), "", "spec.concat[1].get_input: a boolean is no name: write a text, in quotes if YAML takes it for something else"},
		{"a property that nobody asks for, of itself", version + typed(host) + nodes(`{host: {get_property: [SELF, host]}, spec: "`+head+`"}`), "", "the property refers to itself"},
		{"get_attribute", version + nodes(data("{get_attribute: [SELF, x]}")), "", "spec.concat[2]: the function get_attribute is not supported: concat, get_input and get_property are"},
		{"get_operation_output", version + nodes(`{spec: {get_operation_output: [SELF, Standard, create, x]}}`), "", "the function get_operation_output is not supported"},
		{"token", version + nodes(`{spec: {token: ["a,b", ",", 0]}}`), "", "the function token is not supported"},
	}
}

// hostileTemplates returns templates that are meant to be expensive.
func hostileTemplates() []variant {
	long := strings.Repeat("x", 70000)
	return []variant{
		{"a large input that is written often", version + withInputs(`{x: {type: string, default: "`+long+`"}}`, parts(strings.Repeat(", {get_input: x}", 4))), "", "the template becomes more than 262144 bytes"},
		{"a large spec that many node templates have", version + nodes(append([]string{spec("data: {k: " + long + "}")}, "{spec: {get_property: [a, spec]}}", "{spec: {get_property: [a, spec]}}", "{spec: {get_property: [a, spec]}}")...), "", "the template becomes more than 262144 bytes"},
		{"a large mapping that many have", version + nodes(append([]string{"{spec: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: " + long + "}}}"}, "{spec: {get_property: [a, spec]}}", "{spec: {get_property: [a, spec]}}", "{spec: {get_property: [a, spec]}}")...), "", "the template becomes more than 262144 bytes"},
		{"anchors", version + "description: &x [a, a]\ndsl_definitions: [*x, *x]\n" + nodes(spec("")), "", "anchors and aliases are not supported"},
		{"anchors in the text", version + nodes(`{spec: "a: &x 1\nb: *x"}`), "", "the text is no resource: line 1: anchors and aliases are not supported: write the value out, counted from where the text begins"},
		{"what is nested too deep", version + "description: " + strings.Repeat("[", 70) + strings.Repeat("]", 70) + "\n" + nodes(spec("")), "", "nested deeper than 64"},
		{"what is nested too deep in the text", version + nodes(spec("data: "+strings.Repeat("[", 70)+strings.Repeat("]", 70))), "", "nested deeper than 64"},
		{"what is too long", version + "description: " + strings.Repeat("x", tosca.MaxBytes), "", "the template and its imports have more than 262144 bytes"},
		{"more node templates than a manifest may have", version + nodes(make([]string, 301)...), "", "topology_template.node_templates: 301 node templates; the maximum is 300"},
		{"a long key", version + strings.Repeat("k", 1000) + ": x\n", "", `["` + strings.Repeat("k", 64) + `..."]: unknown field`},
		{"a long key of other letters", version + nodes(spec("")) + "    " + strings.Repeat("ä", 200) + ": x\n", "", `node_templates["` + strings.Repeat("ä", 32) + `..."]: a text`},
		{"a long key that is there twice", "{" + strings.Repeat("k", 900) + ": 1, " + strings.Repeat("k", 900) + ": 2}\n", "", "parse YAML"},
		{"bytes that are no text", version + "description: \"\xff\xfe\"\n", "", "parse YAML"},
		{"a number of too many digits", version + "description: 99999999999999999999\n", "", "more digits than 64 bits hold"},
	}
}

// chain returns this many properties, each of which refers to the next one.
func chain(length int) string {
	var properties strings.Builder
	for i := range length {
		fmt.Fprintf(&properties, ", p%d: {type: string, default: {get_property: [SELF, p%d]}}", i, i+1)
	}
	return properties.String() + fmt.Sprintf(", p%d: {type: string, default: end}", length)
}

// doubled returns a chain of properties, each of which refers to the next one twice.
func doubled(last string) string {
	var properties strings.Builder
	for i := range 40 {
		fmt.Fprintf(&properties, ", p%d: {type: string, default: {concat: [{get_property: [SELF, p%d]}, {get_property: [SELF, p%d]}]}}", i, i+1, i+1)
	}
	return version + typed(properties.String()+", p40: {type: string, default: "+last+"}") + nodes(parts(", {get_property: [SELF, p0]}"))
}

func TestTranslate(t *testing.T) {
	for _, test := range templates() {
		t.Run(test.why, func(t *testing.T) {
			got, err := tosca.Translate([]byte(test.template))
			test.check(t, got, err)
		})
	}
}

// check compares the result of a template, or of an archive.
func (v variant) check(t *testing.T, got []any, err error) {
	t.Helper()
	if v.err != "" {
		check.Equal(t, "manifests beside the error", nil, got)
		check.Fails(t, "translation", err, v.err)
		return
	}
	check.Must(t, err)
	want, err := manifest.Decode([]byte(v.want))
	check.Must(t, err)
	check.Equal(t, "manifests", want, got)
}
