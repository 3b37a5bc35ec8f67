package mutate_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
)

// golden is a case of testdata/golden/v1: a spec and what an agent learned, and
// the documents as they are stored, to the byte.
type golden struct {
	Why            string `json:"why"`
	Manifest       string `json:"manifest,omitempty"`
	Tosca          string `json:"tosca,omitempty"`
	Hooks          string `json:"hooks,omitempty"`
	ObserverSchema string `json:"observer_schema,omitempty"`
	// Learned is YAML.
	Learned string `json:"learned,omitempty"`
	// Translated, Mangled and Applied are the documents as they are stored.
	Translated string `json:"translated_manifest,omitempty"`
	Mangled    string `json:"mangled_observer_schema"`
	Applied    string `json:"last_applied_manifest"`
}

// What format v1 means. Agents and webhooks of two versions compute the same
// from the same spec, or an upgrade would write into every Application, and its
// rollback once more. So whoever has to change a file of testdata/golden/v1 has
// made another format version, which needs a directory of its own, and the code
// of v1 beside it (DESIGN, "Versions"). New cases may be added at any time:
// KRAKE_WRITE_GOLDEN=yes fills in the documents of cases that have none, and of
// no others.
func TestGolden(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join("testdata", "golden", application.Format, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) < 12 {
		t.Fatalf("there are only %d cases", len(paths))
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var want golden
			if err := yaml.UnmarshalStrict(text, &want); err != nil {
				t.Fatal(err)
			}
			got := want.documents(t)
			if want.Mangled+want.Applied == "" && os.Getenv("KRAKE_WRITE_GOLDEN") == "yes" {
				got.append(t, path)
				return
			}
			equal(t, "documents", want, got)
		})
	}
}

// documents gives the case with the documents that this program stores when the
// spec changes, and checks that an agent comes to the same.
func (g golden) documents(t *testing.T) golden {
	t.Helper()
	stored := submitted()
	stored.Data = map[string]string{application.ManifestKey: ""}
	prepareCreate(t, stored)
	learned := decode(t, g.Learned)
	app, err := application.Read(stored)
	if err != nil {
		t.Fatal(err)
	}
	app.Learned = learned
	if err := app.Record(stored); err != nil {
		t.Fatal(err)
	}
	cm := stored.DeepCopy()
	cm.Data[application.ManifestKey] = g.Manifest
	if g.Tosca != "" {
		cm.Data[application.ToscaKey] = g.Tosca
	}
	if g.Hooks != "" {
		cm.Annotations[application.HooksAnnotation] = g.Hooks
	}
	if g.ObserverSchema != "" {
		cm.Data[application.ObserverSchemaKey] = g.ObserverSchema
	}
	prepareUpdate(t, cm, stored)

	app, err = application.Read(cm)
	if err != nil {
		t.Fatal(err)
	}
	desired, refusals := mutate.Desire(app.Spec, app.Learned)
	equal(t, "refusals of the agent", []any{}, messages(refusals))
	computed := stored.DeepCopy()
	if err := application.Publish(computed, application.Documents{Translated: desired.Translated, Mangled: desired.Mangled.Documents(), Applied: desired.Resources}); err != nil {
		t.Fatal(err)
	}
	equal(t, "what the agent applies", cm.Data[application.LastAppliedKey], computed.Data[application.LastAppliedKey])

	g.Translated = cm.Data[application.TranslatedKey]
	g.Mangled, g.Applied = cm.Data[application.MangledSchemaKey], cm.Data[application.LastAppliedKey]
	if _, err := manifest.Decode([]byte(g.Applied)); err != nil {
		t.Error(err)
	}
	return g
}

// append puts the documents at the end of the case's file.
func (g golden) append(t *testing.T, path string) {
	t.Helper()
	documents := ""
	if g.Translated != "" {
		documents = fmt.Sprintf("translated_manifest: |-\n  %s\n", g.Translated)
	}
	documents += fmt.Sprintf("mangled_observer_schema: |-\n  %s\nlast_applied_manifest: |-\n  %s\n", g.Mangled, g.Applied)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(text, documents...), 0o600); err != nil {
		t.Fatal(err)
	}
}
