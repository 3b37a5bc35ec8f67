package mutate_test

import (
	"testing"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/test/check"
)

// golden is a case of testdata/golden/v1: a spec with learned values, and the exact bytes of
// the stored documents.
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

// The meaning of format v1. Agents and webhooks of two versions must compute the same
// documents from the same spec. Otherwise an upgrade would write into every Application, and
// so would its rollback.
//
// A changed file of testdata/golden/v1 means another format version. That version needs a
// directory of its own, and the code of v1 beside it. New cases may be
// added at any time: KRAKE_WRITE_GOLDEN=yes fills in the documents of cases without any.
func TestGolden(t *testing.T) {
	check.Golden(t, "testdata/golden/"+application.Format+"/*.yaml", 12, func(t *testing.T, want golden) (got golden, missing string) {
		got = want.documents(t)
		if want.Mangled+want.Applied != "" {
			return got, ""
		}
		if got.Translated != "" {
			missing = "translated_manifest: |-\n" + check.Indented(got.Translated)
		}
		missing += "mangled_observer_schema: |-\n" + check.Indented(got.Mangled)
		return got, missing + "last_applied_manifest: |-\n" + check.Indented(got.Applied)
	})
}

// documents returns the case with the documents that this program stores when the spec
// changes, and checks that an agent computes the same.
func (g golden) documents(t *testing.T) golden {
	t.Helper()
	stored := submitted()
	stored.Data = map[string]string{application.ManifestKey: ""}
	prepareCreate(t, stored)
	learned := decode(t, g.Learned)
	app, err := application.Read(stored)
	check.Must(t, err)
	app.Learned = learned
	check.Must(t, app.Record(stored))
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
	check.Must(t, err)
	desired, refusals := mutate.Desire(app.Spec, app.Learned)
	check.Equal(t, "refusals of the agent", []any{}, messages(refusals))
	computed := stored.DeepCopy()
	documents := application.Documents{Translated: desired.Translated, Mangled: desired.Mangled.Documents(), Applied: desired.Resources}
	check.Must(t, application.Publish(computed, documents))
	check.Equal(t, "what the agent applies", cm.Data[application.LastAppliedKey], computed.Data[application.LastAppliedKey])

	g.Translated = cm.Data[application.TranslatedKey]
	g.Mangled, g.Applied = cm.Data[application.MangledSchemaKey], cm.Data[application.LastAppliedKey]
	_, err = manifest.Decode([]byte(g.Applied))
	check.Must(t, err)
	return g
}
