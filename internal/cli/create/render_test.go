package create

import (
	_ "embed"
	"slices"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/test/kit/clitest"
)

//go:embed testdata/applicationFile.yaml
var applicationFile string

// Each mistake is reported with its line, in the file that contains it.
func TestRenderPlaces(t *testing.T) {
	for _, c := range []struct {
		why, old, new string
		want          string
	}{
		{"an annotation", "krake.dev/application: v1", "krake.dev/application: v2", "web.yaml:12: metadata.annotations[krake.dev/application]:"},
		{"a field of the manifest", "metadata: {name: web}\n    spec:\n      ports: [", "metadata: {name: web, uid: x}\n    spec:\n      ports: [", "web.yaml:18: data.spec.manifest[0].metadata.uid:"},
		{"the schema", "port: null", "port: 80", "web.yaml:39: data.spec.observer_schema[0].spec.ports[0].port:"},
		{"a text that cannot be read, by the parser's count", "ports: [{port: 80}]", "ports: [{port: 80}", "web.yaml:19: data.spec.manifest:"},
		{"a later document that cannot be read", "name: one", "name: one\n        name: one", "web.yaml:27: data.spec.manifest:"},
		{"a warning", "kind: Service\n    metadata: {name: web}\n    spec:", "kind: Service\n    metadata: {name: web}\n    spec:\n      port: 1", "web.yaml:20: warning: data.spec.manifest[0]: unknown field \"spec.port\""},
		{"a field that no ConfigMap has", "\ndata:", "\ndatas: {}\ndata:", "web.yaml:6: the Application cannot be read as a ConfigMap"},
		{"a file that is no YAML", "kind: Namespace", "kind: [", "web.yaml:1: the document cannot be read"},
	} {
		t.Run(c.why, func(t *testing.T) {
			text := strings.Replace(applicationFile, c.old, c.new, 1)
			if text == applicationFile {
				t.Fatal("nothing is changed")
			}
			out, says, status := clitest.Invoke(t, Commands, map[string]string{"web.yaml": text}, "render", "-f", "web.yaml")
			warned := strings.Contains(c.want, "warning")
			told := strings.Split(strings.ReplaceAll(says, "error: ", ""), "\n")
			if !slices.ContainsFunc(told, func(line string) bool { return strings.HasPrefix(line, c.want) }) {
				t.Errorf("%s is not in\n%s", c.want, says)
			}
			if (status == 2) == warned || (out != "") != warned {
				t.Errorf("status %d, and is printed: %q", status, out)
			}
		})
	}
}

// In folded or quoted strings, and in JSON, a mistake is reported at the beginning of the
// string.
func TestRenderPlacesInOtherTexts(t *testing.T) {
	const head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, annotations: {krake.dev/application: v1}}\ndata:\n"
	for why, text := range map[string]string{
		"folded": head + "  spec.manifest: >\n    {apiVersion: v1, kind: Service,\n    metadata: {name: web, uid: x}}\n",
		"quoted": head + "  spec.manifest: \"apiVersion: v1\\nkind: Service\\nmetadata: {name: web, uid: x}\"\n",
		"JSON":   "\n\n{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"web\", \"annotations\": {\"krake.dev/application\": \"v1\"}}, \"data\": {\n\n\"spec.manifest\": \"{apiVersion: v1, kind: Service, metadata: {name: web, uid: x}}\"}}",
	} {
		t.Run(why, func(t *testing.T) {
			_, says, status := clitest.Invoke(t, Commands, map[string]string{"-": text}, "render", "-f", "-")
			if !strings.HasPrefix(says, "stdin:5: data.spec.manifest[0].metadata.uid: Forbidden") || status != 2 {
				t.Errorf("%d: %s", status, says)
			}
		})
	}
}

// A manifest and an observer schema become an Application, and mistakes have the lines of the
// two files.
func TestRenderOfAManifest(t *testing.T) {
	files := map[string]string{"web.yaml": clitest.Service, "schema.yaml": clitest.ServiceSchema}
	out, says, status := clitest.Invoke(t, Commands, files, "render", "-f", "web.yaml", "--observer-schema", "schema.yaml", "-n", "demo")
	if status != 0 || says != "" || !strings.Contains(out, "name: web\n  namespace: demo\n") || !strings.Contains(out, `"nodePort":null`) {
		t.Errorf("%d: %s\n%s", status, says, out)
	}
	files["web.yaml"] = strings.Replace(clitest.Service, "kind: Service", "kind: 'a b'", 1)
	files["schema.yaml"] = strings.Replace(clitest.ServiceSchema, "type: null", "type: x", 1)
	_, says, status = clitest.Invoke(t, Commands, files, "render", "-f", "web.yaml", "--observer-schema", "schema.yaml", "--name", "shop")
	for _, want := range []string{"web.yaml:3: data.spec.manifest[0].kind:", "schema.yaml:6: data.spec.observer_schema[0].spec.type:", "the Application shop would be refused"} {
		if !strings.Contains(says, want) || status != 2 {
			t.Errorf("%s is not in\n%s", want, says)
		}
	}
}

func TestRenderOfWhatCannotBe(t *testing.T) {
	files := map[string]string{"web.yaml": applicationFile, "empty.yaml": ""}
	for _, c := range []struct{ arguments, want string }{
		{"", "name a file by -f"},
		{"-f nowhere", "no such file"},
		{"-f web.yaml -o table", "it has to be one of yaml, json"},
		{"-f web.yaml --name x", "leave out --name and --observer-schema"},
		{"-f web.yaml -n other", "says namespace demo, and the flag --namespace other"},
		{"-f empty.yaml", "empty.yaml has no resource: name a file with Applications, or with a manifest"},
		{"-f web.yaml x", "x is too much: kubectl krake render -f FILE"},
	} {
		out, says, status := clitest.Invoke(t, Commands, files, strings.Fields("render "+c.arguments)...)
		if !strings.Contains(says, c.want) || status != 2 || out != "" {
			t.Errorf("%s: %d: %s%s, want %s", c.arguments, status, out, says, c.want)
		}
	}
}
