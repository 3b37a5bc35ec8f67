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

// checkTranslated waits until an Application is what a template of this colour says,
// and fails if its archive is not what the user wrote.
func checkTranslated(t *testing.T, a app, colour string, archive []byte) {
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
	if stored := cm.BinaryData[application.CSARKey]; !bytes.Equal(stored, archive) {
		t.Errorf("the archive is not what the user wrote: %q", stored)
	}
	for _, other := range application.SpecKeys() {
		if other != application.CSARKey && (cm.Data[other] != "" || len(cm.BinaryData[other]) > 0) {
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

// tryArchive changes the archive of the Application, as the user.
func (a app) tryArchive(t *testing.T, archive []byte) error {
	t.Helper()
	return a.TryPatch(t.Context(), fmt.Sprintf(`{"binaryData": {%q: %q}}`, application.CSARKey, base64.StdEncoding.EncodeToString(archive)))
}

// An Application is an archive, created by the commands of the documentation. It is
// deployed, and its drift is repaired. Another archive in its place is translated
// again. An invalid one is refused with its reason, and nothing changes. A manifest beside it wins.
func TestCSAR(t *testing.T) {
	t.Parallel()
	green := archive(t, template("green"))
	namespace, file := newNamespace(t), filepath.Join(t.TempDir(), "web.csar")
	kit.Must(t, os.WriteFile(file, green, 0o600))
	env.hub.Kubectl(t, "--namespace", namespace, "create", "configmap", "web", "--from-file="+application.CSARKey+"="+file)
	env.hub.Kubectl(t, "--namespace", namespace, "annotate", "configmap", "web", application.FormatAnnotation+"="+application.Format)
	a := app{env.hub.App(namespace, "web")}
	checkTranslated(t, a, "green", green)
	a.drift(t, "green")

	red := archive(t, template("red"))
	kit.Must(t, a.tryArchive(t, red))
	checkTranslated(t, a, "red", red)
	a.drift(t, "red")

	for what, bad := range map[string]struct {
		archive []byte
		text    string
	}{
		"a file of an archive that was cut off": {red[:len(red)/2], "Invalid CSAR archive"},
		"a template with an unknown type":       {archive(t, strings.Replace(template("red"), "indigo.KubernetesObject", "Compute", 1)), "definitions/web.yaml"},
		"a resource that is none":               {archive(t, strings.Replace(template("red"), "kind: Service", "sort: Service", 1)), "web"},
	} {
		err := a.tryArchive(t, bad.archive)
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), bad.text) || !strings.Contains(err.Error(), "data."+application.CSARKey) {
			t.Errorf("%s: %v, want 422 with %q", what, err, bad.text)
		}
	}
	checkTranslated(t, a, "red", red)

	manifest := "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {colour: yellow}}"
	a.Patch(t, fmt.Sprintf(`{"data": {%q: %q}}`, application.ManifestKey, manifest))
	kit.Eventually(t, func() string { return a.settings(t, "yellow") })
	if cm := a.Stored(t); !bytes.Equal(cm.BinaryData[application.CSARKey], red) || cm.Data[application.TranslatedKey] != "" {
		t.Errorf("beside a manifest the archive has %d bytes, and its translation is %q", len(cm.BinaryData[application.CSARKey]), cm.Data[application.TranslatedKey])
	}
	a.Patch(t, fmt.Sprintf(`{"data": {%q: null}}`, application.ManifestKey))
	checkTranslated(t, a, "red", red)
	a.Delete(t)
	a.mustGo(t, env.hub)
}
