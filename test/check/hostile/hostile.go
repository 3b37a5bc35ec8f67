// Package hostile has Applications whose text is small for what is computed of it, and measures the
// memory of computations.
package hostile

import (
	"archive/zip"
	"bytes"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// Shape is an Application that a user may send.
type Shape struct {
	Why string
	// Hooks is the annotation of this name.
	Hooks string
	// Manifest is compressed if it is large.
	Manifest, ObserverSchema, Tosca string
	CSAR                            []byte
	// Cause is a part of the refusal, empty if the Application is admitted.
	Cause string
}

// ConfigMap returns the Application.
func (s Shape) ConfigMap() *corev1.ConfigMap {
	cm := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "app", UID: "app-uid", Annotations: map[string]string{application.FormatAnnotation: application.Format}},
		Data:       map[string]string{},
	}
	if s.Hooks != "" {
		cm.Annotations[application.HooksAnnotation] = s.Hooks
		cm.Annotations[application.InitContainersAnnotation] = "true"
	}
	for key, text := range map[string]string{application.ManifestKey: s.Manifest, application.ObserverSchemaKey: s.ObserverSchema, application.ToscaKey: s.Tosca} {
		if text != "" {
			cm.Data[key] = text
		}
	}
	if s.CSAR != nil {
		cm.BinaryData = map[string][]byte{application.CSARKey: s.CSAR}
	}
	if err := application.CompressManifest(cm); err != nil {
		panic(err) // a buffer takes everything
	}
	return cm
}

// A Shape with a cause is refused with it. The others are as large as an Application may be.
const (
	tooMany = "more than 50000 values, which are texts, numbers, objects and lists: split the text"
	hooked  = "metadata.annotations[krake.dev/hooks]: Forbidden: the hooks add to"
)

// Shapes returns the Applications.
func Shapes() []Shape {
	long := strings.Repeat("k", 100_000)
	most := manifest.MaxValues - 100
	return []Shape{
		{Why: "as many containers as hooks may add to", Hooks: "complete, shutdown", Manifest: containers("{},", 1000)},
		{Why: "15,000 containers with the hook shutdown", Hooks: "shutdown", Manifest: containers("{},", 15_000), Cause: hooked},
		{Why: "15,000 containers in JSON", Hooks: "shutdown", Manifest: asJSON(containers("{},", 15_000)), Cause: hooked},
		{Why: "39,000 containers with both hooks", Hooks: "complete, shutdown", Manifest: containers("{},", 39_000), Cause: hooked},
		{Why: "100 Deployments of 300 containers", Hooks: "complete, shutdown", Manifest: deployments(100, 300), Cause: hooked},
		{Why: "15,000 containers of a custom schema", Hooks: "shutdown", Manifest: containers("{},", 15_000), ObserverSchema: containers("{},", 10_000), Cause: "observer_schema"},
		{Why: "variables of the names of the hooks", Hooks: "shutdown", Manifest: containers("{env: [{name: KRAKE_SHUTDOWN_TOKEN}]},", 1500), Cause: "the hook shutdown adds it"},
		{Why: "lists in a list", Manifest: song(lists(most))},
		{Why: "too many lists in a list", Manifest: song(lists(80_000)), Cause: tooMany},
		{Why: "lists in JSON", Manifest: asJSON(song(lists(most)))},
		{Why: "too many lists in JSON", Manifest: asJSON(song(lists(80_000))), Cause: tooMany},
		{Why: "lists in lists", Manifest: song("[" + strings.Repeat(strings.Repeat("[", 50)+strings.Repeat("]", 50)+",", most/50) + "]")},
		{Why: "too many numbers", Manifest: song("[" + strings.Repeat("1,", 120_000) + "1]"), Cause: tooMany},
		{Why: "small objects", Manifest: song("[" + strings.Repeat("{a},", most/2) + "]")},
		{Why: "too many small objects", Manifest: song("[" + strings.Repeat("{a},", 60_000) + "]"), Cause: tooMany},
		{Why: "objects in objects", Manifest: song("[" + strings.Repeat(strings.Repeat("{a: ", 50)+strings.Repeat("}", 50)+",", most/51) + "]")},
		{Why: "a wide object", Manifest: song("{" + keys(36_000) + "}")},
		{Why: "a wide object of a built-in kind", Manifest: "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {" + keys(30_000) + "}}"},
		{Why: "lists of a built-in kind", Manifest: "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [" + strings.Repeat("{},", most) + "]}}"},
		{Why: "long keys", Manifest: asJSON(song(`{"` + long + `": 1, "` + long + `x": {"` + strings.Repeat("k", 50_000) + `": ` + lists(100) + "}}"))},
		{Why: "a long key around lists", Manifest: asJSON(song(`{"` + long + `": ` + lists(most) + "}"))},
		{Why: "a list of 15,000 objects", Manifest: "[" + strings.Repeat("{a: 1},", 15_000) + "]", Cause: "more than 300 resources"},
		{Why: "a List of 15,000 objects", Manifest: "{apiVersion: v1, kind: List, metadata: {name: a}, items: [" + strings.Repeat("{a: 1},", 15_000) + "]}", Cause: "a List is not supported"},
		{Why: "15,000 documents", Manifest: strings.Repeat("a: 1\n---\n", 15_000), Cause: "more than 300 resources"},
		{Why: "aliases", Manifest: song(aliases()), Cause: "anchors and aliases are not supported"},
		{Why: "aliases in JSON", Manifest: "{\"a\": &a [], \"b\": [*a]}", Cause: "anchors and aliases are not supported"},
		{Why: "lists of the observer schema", Manifest: song("[1]"), ObserverSchema: song(lists(most)), Cause: "observer_schema"},
		{Why: "too many lists of the observer schema", Manifest: song("[1]"), ObserverSchema: song(lists(80_000)), Cause: tooMany},
		{Why: "texts that YAML 1.1 reads in another way", Manifest: song("[" + strings.Repeat("yes,", most) + "]")},
		{Why: "a compressed text of 4 MiB", Manifest: song(`"` + strings.Repeat("x", manifest.MaxBytes-100) + `"`)},
		{Why: "a compressed text that is one byte too long", Manifest: "#" + strings.Repeat("x", manifest.MaxBytes), Cause: "larger than 4194304 bytes"},
		{Why: "a compressed bomb", Manifest: strings.Repeat("#", 64<<20), Cause: "larger than 4194304 bytes"},
		{Why: "compressed texts", Manifest: song("[" + strings.Repeat(strings.Repeat("x", 80)+", ", most) + "]")},
		{Why: "compressed objects", Manifest: song("[" + strings.Repeat("{"+strings.Repeat("k", 60)+": "+strings.Repeat("x", 60)+"},", most/2) + "]")},
		{Why: "a compressed wide object", Manifest: song("{" + strings.ReplaceAll(keys(most), ": ", strings.Repeat("k", 60)+": ") + "}")},
		{Why: "compressed lines", Manifest: "apiVersion: v1\nkind: Song\nmetadata: {name: a}\nspec:\n" + strings.Repeat("- "+strings.Repeat("x", 60)+"\n", most)},
		{Why: "compressed lists of a built-in kind", Manifest: "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [" + strings.Repeat("{name: "+strings.Repeat("x", 60)+"},", most/2) + "]}}"},
		{Why: "compressed comments", Manifest: song("[]") + strings.Repeat("\n#", manifest.MaxBytes/2-100)},
		{Why: "compressed objects of a built-in kind", Manifest: many(manifest.MaxResources)},
		{Why: "a template with too many lists", Tosca: template("'"+song("1")+"'", lists(80_000)), Cause: tooMany},
		{Why: "a template with a resource of lists", Tosca: template(song(lists(most)), "a")},
		{Why: "a template with a text of lists", Tosca: template("'"+song(lists(most))+"'", "a")},
		{Why: "a template whose resources share an input", Tosca: sharing(9, lists(8000)), Cause: "the resources have"},
		{Why: "a template with aliases", Tosca: template(song(aliases()), "a"), Cause: "anchors and aliases are not supported"},
		{Why: "an archive that is a bomb", CSAR: archive(bytes.Repeat([]byte("#"), 64<<20)), Cause: "more than 262144 bytes"},
		{Why: "an archive with too many lists", CSAR: archive([]byte(template(song(lists(80_000)), "a"))), Cause: tooMany},
		{Why: "an archive with aliases", CSAR: archive([]byte(template(song(aliases()), "a"))), Cause: "anchors and aliases are not supported"},
		{Why: "an archive of containers", Hooks: "complete, shutdown", CSAR: archive([]byte(template(containers("{},", 30_000), "a"))), Cause: hooked},
	}
}

func lists(count int) string { return "[" + strings.Repeat("[],", count-1) + "[]]" }

func song(spec string) string {
	return "{apiVersion: v1, kind: Song, metadata: {name: a}, spec: " + spec + "}"
}

// many returns so many ConfigMaps, with 4 MiB in all.
func many(count int) string {
	var b strings.Builder
	for i := range count {
		fmt.Fprintf(&b, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a%d}, data: {a: %s}}\n---\n", i, strings.Repeat("x", manifest.MaxBytes/count-100))
	}
	return b.String()
}

func containers(container string, count int) string {
	return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {template: {spec: {containers: [" + strings.Repeat(container, count) + "{}]}}}}"
}

func keys(count int) string {
	var b strings.Builder
	for i := range count {
		fmt.Fprintf(&b, "%x: ,", i)
	}
	return strings.ReplaceAll(b.String(), "e", "g") // 1e1 is a number
}

func aliases() string {
	var b strings.Builder
	b.WriteString("{a0: &a0 [x, x, x, x, x, x, x, x]")
	for i := range 12 {
		fmt.Fprintf(&b, ", a%d: &a%d [%s]", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 8), ", "))
	}
	return b.String() + "}"
}

// asJSON returns a text in the flow style of YAML as JSON, if its values are JSON already.
func asJSON(text string) string {
	replacer := strings.NewReplacer("apiVersion", `"apiVersion"`, "apps/v1", `"apps/v1"`, " v1", ` "v1"`, "kind", `"kind"`, "Deployment", `"Deployment"`, "Song", `"Song"`,
		"metadata", `"metadata"`, "name", `"name"`, " a}", ` "a"}`, "spec", `"spec"`, "template", `"template"`, "containers", `"containers"`)
	return replacer.Replace(text)
}

func template(spec, description string) string {
	return "tosca_definitions_version: tosca_simple_yaml_1_0\ndescription: " + description + "\n" +
		"topology_template:\n  inputs: {}\n  node_templates:\n    a: {type: tosca.nodes.indigo.KubernetesObject, properties: {spec: " + spec + "}}\n"
}

// deployments returns Deployments of different names.
func deployments(count, each int) string {
	var b strings.Builder
	for i := range count {
		b.WriteString(strings.Replace(containers("{},", each), "name: a", fmt.Sprintf("name: a%d", i), 1) + "\n---\n")
	}
	return b.String()
}

// sharing returns a template whose resources have the same input as their spec.
func sharing(count int, spec string) string {
	var b strings.Builder
	b.WriteString("tosca_definitions_version: tosca_simple_yaml_1_0\ntopology_template:\n  inputs: {a: {type: map, default: " + song(spec) + "}}\n  node_templates:\n")
	for i := range count {
		fmt.Fprintf(&b, "    a%d: {type: tosca.nodes.indigo.KubernetesObject, properties: {spec: {get_input: a}}}\n", i)
	}
	return b.String()
}

func archive(text []byte) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, text := range map[string][]byte{"TOSCA-Metadata/TOSCA.meta": []byte("Entry-Definitions: template.yaml\n"), "template.yaml": text} {
		file, err := w.Create(name)
		if err == nil {
			_, err = file.Write(text)
		}
		if err != nil {
			panic(err) // a buffer takes everything
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}
