package hooks

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// template is a template of a Service, and of a ConfigMap whose value is an input.
func template(colour string) string {
	return fmt.Sprintf(`
tosca_definitions_version: tosca_simple_yaml_1_0
imports: [types.yaml]
topology_template:
  inputs:
    colour: {type: string, default: %s}
  node_templates:
    settings:
      type: tosca.nodes.indigo.KubernetesObject
      properties:
        spec:
          concat:
          - |
            apiVersion: v1
            kind: ConfigMap
            metadata: {name: settings}
          - "data: {colour:"
          - get_input: colour
          - "}"
    web:
      type: tosca.nodes.indigo.KubernetesObject
      properties:
        spec: |
          apiVersion: v1
          kind: Service
          metadata: {name: web}
          spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080, protocol: TCP}]}
`, colour)
}

const definitions = `
tosca_definitions_version: tosca_simple_yaml_1_0
node_types:
  tosca.nodes.indigo.KubernetesObject:
    derived_from: tosca.nodes.Root
    properties:
      spec: {type: string, required: true}
`

// alone is a template that needs no other file.
func alone(colour string) string {
	return strings.Replace(template(colour), "imports: [types.yaml]\n", "", 1)
}

// translated returns the manifests that such a template means.
func translated(colour string) []any {
	return []any{
		map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "settings"}, "data": map[string]any{"colour": colour}},
		map[string]any{"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "web"}, "spec": map[string]any{
			"selector": map[string]any{"app": "web"},
			"ports":    []any{map[string]any{"port": 80.0, "targetPort": 8080.0, "protocol": "TCP"}},
		}},
	}
}

// archive makes a CSAR of a template.
func archive(t *testing.T, entry string) []byte {
	t.Helper()
	var file bytes.Buffer
	writer := zip.NewWriter(&file)
	for _, member := range [][2]string{
		{"TOSCA-Metadata/TOSCA.meta", "TOSCA-Meta-File-Version: 1.0\nCSAR-Version: 1.1\nCreated-By: somebody\nEntry-Definitions: definitions/web.yaml\n"},
		{"definitions/web.yaml", entry},
		{"definitions/types.yaml", definitions},
	} {
		w, err := writer.Create(member[0])
		kit.Must(t, err)
		_, err = w.Write([]byte(member[1]))
		kit.Must(t, err)
	}
	kit.Must(t, writer.Close())
	return file.Bytes()
}

// fileOf writes a file for kubectl.
func fileOf(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	kit.Must(t, os.WriteFile(path, content, 0o600))
	return path
}

// checkTranslated waits until an Application is what a template of this colour says,
// and fails if its text is not what the user wrote.
func checkTranslated(t *testing.T, a app, colour, key string, text []byte) {
	t.Helper()
	a.MustBe(t, application.StateRunning)
	kit.Eventually(t, func() string { return a.settings(t, colour) })
	cm := a.Stored(t)
	var published any
	if err := json.Unmarshal([]byte(cm.Data[application.TranslatedKey]), &published); err != nil {
		t.Fatalf("%s: %v", application.TranslatedKey, err)
	}
	if diff := cmp.Diff(any(translated(colour)), published); diff != "" {
		t.Errorf("%s (-want +got):\n%s", application.TranslatedKey, diff)
	}
	if stored := cm.Data[key] + string(cm.BinaryData[key]); stored != string(text) {
		t.Errorf("%s is not what the user wrote: %q", key, stored)
	}
	for _, other := range application.SpecKeys() {
		if other != key && (cm.Data[other] != "" || len(cm.BinaryData[other]) > 0) {
			t.Errorf("somebody has written %s", other)
		}
	}
}

// settings returns a complaint unless the ConfigMap on the cluster has this colour.
func (a app) settings(t *testing.T, colour string) string {
	t.Helper()
	live := env.hub.App(a.Namespace, "settings").Stored(t)
	if live == nil || live.Data["colour"] != colour {
		return fmt.Sprintf("the ConfigMap is %v, want the colour %s", live, colour)
	}
	return ""
}

// drift changes the objects as another client, and waits until they are repaired.
func (a app) drift(t *testing.T, colour string) {
	t.Helper()
	env.hub.Change(t, kit.ConfigMaps, a.Namespace, "settings", `{"data": {"colour": "wrong"}}`)
	kit.Must(t, env.hub.CoreV1().Services(a.Namespace).Delete(t.Context(), "web", metav1.DeleteOptions{}))
	kit.Eventually(t, func() string {
		if env.hub.Get(t, kit.Services, a.Namespace, "web") == nil {
			return "the Service is not back"
		}
		return a.settings(t, colour)
	})
}

// created makes an Application of a file by the commands of the documentation.
func created(t *testing.T, namespace, key, name string, content []byte) app {
	t.Helper()
	env.hub.Kubectl(t, "--namespace", namespace, "create", "configmap", "web", "--from-file="+key+"="+fileOf(t, name, content))
	env.hub.Kubectl(t, "--namespace", namespace, "annotate", "configmap", "web", application.FormatAnnotation+"="+application.Format)
	return app{env.hub.App(namespace, "web")}
}

// trySource changes the source of the Application, as the user.
func (a app) trySource(t *testing.T, key string, source []byte) error {
	t.Helper()
	if key == application.CSARKey {
		return a.TryPatch(t.Context(), fmt.Sprintf(`{"binaryData": {%q: %q}}`, key, base64.StdEncoding.EncodeToString(source)))
	}
	return a.TryPatch(t.Context(), fmt.Sprintf(`{"data": {%q: %q}}`, key, source))
}

// mustRefuse fails unless this source is refused, with a text.
func (a app) mustRefuse(t *testing.T, what, key string, source []byte, text string) {
	t.Helper()
	err := a.trySource(t, key, source)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), "data."+key) {
		t.Errorf("%s: %v, want 422 with %q", what, err, text)
	}
}

// An Application is an archive, created by the commands of the documentation. It is
// deployed, and its drift is repaired. Another archive in its place is translated
// again. An invalid one is refused with its reason, and nothing changes.
func TestCSAR(t *testing.T) {
	t.Parallel()
	green := archive(t, template("green"))
	a := created(t, newNamespace(t), application.CSARKey, "web.csar", green)
	checkTranslated(t, a, "green", application.CSARKey, green)
	a.drift(t, "green")

	red := archive(t, template("red"))
	kit.Must(t, a.trySource(t, application.CSARKey, red))
	checkTranslated(t, a, "red", application.CSARKey, red)
	a.drift(t, "red")

	for what, bad := range map[string]struct {
		archive []byte
		text    string
	}{
		"a file of an archive that was cut off": {red[:len(red)/2], "Invalid CSAR archive"},
		"a template with an unknown type":       {archive(t, strings.Replace(template("red"), "indigo.KubernetesObject", "Compute", 1)), "definitions/web.yaml"},
		"a resource that is none":               {archive(t, strings.Replace(template("red"), "kind: Service", "sort: Service", 1)), "web"},
	} {
		a.mustRefuse(t, what, application.CSARKey, bad.archive, bad.text)
	}
	checkTranslated(t, a, "red", application.CSARKey, red)
	a.Delete(t)
	a.mustGo(t, env.hub)
}

// The same for a template in the text of an Application; a manifest beside it wins.
func TestTosca(t *testing.T) {
	t.Parallel()
	green := alone("green")
	a := created(t, newNamespace(t), application.ToscaKey, "web.yaml", []byte(green))
	checkTranslated(t, a, "green", application.ToscaKey, []byte(green))
	a.drift(t, "green")
	red := alone("red")
	kit.Must(t, a.trySource(t, application.ToscaKey, []byte(red)))
	checkTranslated(t, a, "red", application.ToscaKey, []byte(red))
	a.drift(t, "red")

	for what, bad := range map[string]struct{ tosca, text string }{
		"an unknown input":      {strings.Replace(red, "get_input: colour", "get_input: color", 1), "unknown input"},
		"another version":       {strings.Replace(red, "yaml_1_0", "yaml_1_3", 1), "write tosca_simple_yaml_1_0"},
		"an import of a file":   {template("red"), "imports[0]"},
		"a URL":                 {"https://templates.example.org/web.yaml", "strict mode"},
		"a URL without TLS":     {"http://templates.example.org/web.yaml", "https://"},
		"a file of the agent's": {"file:///etc/passwd.yaml", "file://"},
	} {
		a.mustRefuse(t, what, application.ToscaKey, []byte(bad.tosca), bad.text)
	}
	checkTranslated(t, a, "red", application.ToscaKey, []byte(red))

	manifest := "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {colour: yellow}}"
	kit.Must(t, a.trySource(t, application.ManifestKey, []byte(manifest)))
	kit.Eventually(t, func() string { return a.settings(t, "yellow") })
	if cm := a.Stored(t); cm.Data[application.ToscaKey] != red || cm.Data[application.TranslatedKey] != "" {
		t.Errorf("beside a manifest the template is %q, its translation %q", cm.Data[application.ToscaKey], cm.Data[application.TranslatedKey])
	}
	a.Patch(t, fmt.Sprintf(`{"data": {%q: null}}`, application.ManifestKey))
	checkTranslated(t, a, "red", application.ToscaKey, []byte(red))
}
