package lens

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/test/check"
)

// shownOf returns the lines of a live object of an Application, and all their texts.
func shownOf(t *testing.T, resource, observerSchema, live string, private bool) (lines []Line, text string) {
	t.Helper()
	app, expected := admitted(t, resource, observerSchema)
	lines, err := Lines(app, expected, parsed(t, live), private)
	check.Must(t, err)
	for _, line := range lines {
		text += strings.Join([]string{line.Text, line.Desired, line.Note}, "\t") + "\n"
	}
	return lines, text
}

func lineAt(t *testing.T, lines []Line, path string) Line {
	t.Helper()
	for _, line := range lines {
		if line.Path != nil && line.Path.String() == path {
			return line
		}
	}
	t.Fatalf("there is no line of %s", path)
	return Line{}
}

const opaque = `apiVersion: v1
kind: Secret
metadata: {name: keys}
type: Opaque
`

// Not even the user who asks for private values sees those of a Secret: the page may be on a projector.
func TestASecretNeverShowsItsValues(t *testing.T) {
	for _, live := range []string{
		"{apiVersion: v1, kind: Secret, metadata: {name: keys, namespace: demo}, type: hunter2, data: {password: hunter2, more: [hunter2], other: {a: hunter2}}}",
		"{apiVersion: v1, kind: Secret, metadata: {name: keys, namespace: demo, annotations: {note: hunter2}, labels: {x: hunter2}}, stringData: {password: hunter2}}",
		"{apiVersion: v1, kind: Secret, metadata: {name: keys, namespace: demo}, data: hunter2, stringData: [hunter2]}",
		"{apiVersion: v1, kind: Secret, metadata: {name: keys, namespace: demo}, immutable: hunter2}",
	} {
		for _, private := range []bool{false, true} {
			if _, text := shownOf(t, opaque, "", live, private); strings.Contains(text, "hunter2") {
				t.Errorf("private %v, %s:\n%s", private, live, text)
			}
		}
	}
}

func TestPrivateValuesAreShownToThoseWhoAskForThem(t *testing.T) {
	drifted := strings.NewReplacer("value: debug", "value: hunter2", "[-q, -x]", "[-q, --token=hunter3]").Replace(live)
	desired := strings.Replace(web, "image: nginx:1.27", "image: nginx:1.27\n        env: [{name: LEVEL, value: hunter1}]", 1)
	for _, words := range []bool{false, true} {
		lines, text := shownOf(t, desired, "", drifted, words)
		for _, word := range []string{"hunter1", "hunter2", "hunter3"} {
			check.Equal(t, fmt.Sprintf("private %v: %s is shown", words, word), words, strings.Contains(text, word))
		}
		value := lineAt(t, lines, "spec.template.spec.containers[1].env[0].value")
		check.Equal(t, "look", Drifting, value.Look)
	}
}

// What is desired and not there has a line, so that it can be seen and chosen.
func TestMissingFieldsAndElementsAreShown(t *testing.T) {
	const desired = "{apiVersion: v1, kind: Service, metadata: {name: web, labels: {team: blue}}, spec: {type: NodePort, ports: [{port: 80}, {port: 443, name: tls}]}}"
	const found = "{apiVersion: v1, kind: Service, metadata: {name: web, namespace: demo}, spec: {ports: [{port: 80}]}}"
	lines, _ := shownOf(t, desired, "", found, false)
	kind := lineAt(t, lines, "spec.type")
	check.Equal(t, "type", []string{"  type:", "NodePort", string(Drifting)}, []string{kind.Text, kind.Desired, string(kind.Look)})
	check.Equal(t, "the type can be toggled", true, kind.Toggle != nil)
	labels := lineAt(t, lines, "metadata.labels")
	check.Equal(t, "labels", Drifting, labels.Look)
	if !strings.Contains(labels.Desired, `"team":"blue"`) {
		t.Errorf("the labels are desired as %s", labels.Desired)
	}
	ports := lineAt(t, lines, "spec.ports")
	check.Equal(t, "ports", Drifting, ports.Look)
	if !strings.Contains(ports.Desired, `"port":443`) {
		t.Errorf("the ports are desired as %s", ports.Desired)
	}
	// A missing variable is as private as one that is there.
	env := strings.Replace(web, "image: nginx:1.27", "image: nginx:1.27\n        env: [{name: LEVEL, value: debug}, {name: TOKEN, value: hunter2}]", 1)
	_, text := shownOf(t, env, "", live, false)
	if strings.Contains(text, "hunter2") || !strings.Contains(text, "TOKEN") {
		t.Errorf("a missing variable:\n%s", text)
	}
	if _, text = shownOf(t, env, "", live, true); !strings.Contains(text, "hunter2") {
		t.Errorf("a missing variable, private:\n%s", text)
	}
}

const config = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: demo}
data:
  a: "1"
`

func TestATextOfSeveralLinesHasSeveralLines(t *testing.T) {
	const text = "first\nsecond: \"x\"\n\n  third\n"
	resource := strings.Replace(config, `"1"`, fmt.Sprintf("%q", text), 1)
	lines, _ := shownOf(t, resource, "", resource, true)
	var got []string
	for _, line := range lines {
		if line.Text = strings.TrimRight(line.Text, " "); len(got) > 0 || strings.HasPrefix(line.Text, "data:") {
			got = append(got, line.Text)
		}
	}
	check.Equal(t, "lines", []string{"data:", "  a: |", "    first", `    second: "x"`, "", "      third"}, got)
	for _, line := range lines[len(lines)-4:] { // only the first one is the field's
		check.Equal(t, "look of a further line", InOrder, line.Look)
		if line.Path != nil || line.Toggle != nil {
			t.Errorf("line %q is that of a field", line.Text)
		}
	}
}

// A text of a megabyte, wanted or found, must not make the page unusable.
func TestLongTextsAreCut(t *testing.T) {
	for why, values := range map[string][2]string{
		"wanted": {strings.Repeat("w", 100<<10), "1"},
		"found":  {"1", strings.Repeat("f", 100<<10)},
		"of two": {strings.Repeat("é", 50<<10), strings.Repeat("ö", 50<<10)},
		"lines":  {strings.Repeat("w\n", 50<<10), strings.Repeat("f\n", 50<<10)},
	} {
		wanted, found := strings.Replace(config, `"1"`, fmt.Sprintf("%q", values[0]), 1), strings.Replace(config, `"1"`, fmt.Sprintf("%q", values[1]), 1)
		lines, _ := shownOf(t, wanted, "", found, true)
		check.Equal(t, why+": look", Drifting, lineAt(t, lines, "data.a").Look)
		for _, line := range lines {
			if size := len(line.Text) + len(line.Desired); size > 2*longestText+100 {
				t.Errorf("%s: a line has %d bytes", why, size)
			}
		}
	}
	// The desired object may lack all of them.
	many := config
	for i := range 20 {
		many += fmt.Sprintf("  b%d: %q\n", i, strings.Repeat("w", 10<<10))
	}
	lines, _ := shownOf(t, many, "", "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings, namespace: demo}}", true)
	if size := len(lineAt(t, lines, "data").Desired); size > longestText+100 {
		t.Errorf("what is missing has %d bytes", size)
	}
}

// An API server without a schema of a kind, or a newer one, may store any shape.
func TestLinesOfOddObjects(t *testing.T) {
	const head = "apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: demo}"
	odd := []string{
		"{}", "null", "7", "x", "[]", "[1]", "[{}]", "[[]]", "[[1, [2]]]", "[null]", "{a: null}", "{a: []}", "true", `"a\nb"`, `{"a\nb": 1}`, `{"": {"": ""}}`,
	}
	var objects []string
	for _, value := range odd {
		for _, format := range []string{
			"{" + head + ", spec: %s}", "{" + head + ", spec: {selector: %s, replicas: %[1]s}}", "{" + head + ", spec: {template: %s}, status: %[1]s}",
			"{" + head + ", spec: {template: {spec: {containers: %s, volumes: %[1]s}}}}", "{" + head + ", spec: {template: {spec: {containers: [%s, {name: web, ports: %[1]s, args: %[1]s}]}}}}",
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: demo, labels: %s, annotations: %[1]s, managedFields: %[1]s, finalizers: %[1]s}}",
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: demo, managedFields: [{manager: %s, fieldsV1: %[1]s, time: %[1]s}]}}",
			"{apiVersion: apps/v1, kind: Deployment, metadata: %s}", "{apiVersion: %s, kind: Deployment, metadata: {name: web}}",
		} {
			objects = append(objects, fmt.Sprintf(format, value))
		}
	}
	for _, observerSchema := range []string{
		"", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: null}", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}",
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: null}, spec: {template: {spec: {containers: [{ports: null, args: null}, {}, {observer_schema_list_min_length: 0, observer_schema_list_max_length: 3}]}}}}`,
	} {
		app, expected := admitted(t, web, observerSchema)
		for _, text := range objects {
			for _, private := range []bool{false, true} {
				lines, err := Lines(app, expected, parsed(t, text), private)
				if err == nil && len(lines) == 0 {
					t.Errorf("%s has no lines", text)
				}
			}
		}
	}
}

func TestAListOfAnotherShapeDrifts(t *testing.T) {
	const ports = "ports: [{containerPort: 80, protocol: TCP}, {containerPort: 443, name: tls, protocol: TCP}]"
	for _, found := range []string{"tty: true", "ports: []", "ports: null", "ports: x"} {
		lines, _ := shownOf(t, web, "", strings.Replace(live, ports, found, 1), false)
		at := slices.IndexFunc(lines, func(line Line) bool { return strings.HasPrefix(strings.TrimSpace(line.Text), "ports:") })
		if at < 0 {
			t.Errorf("%s: there is no line of the ports", found)
			continue
		}
		if lines[at].Look != Drifting || !strings.Contains(lines[at].Desired, "443") {
			t.Errorf("%s: the ports are %s, desired %q", found, lines[at].Look, lines[at].Desired)
		}
	}
}
