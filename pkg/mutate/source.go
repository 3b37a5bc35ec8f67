package mutate

import (
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/tosca"
)

// SourceOf returns the URL of the spec's resources, and whether there is one. The refusal reports
// an invalid URL.
func SourceOf(spec application.Spec) (source application.Source, isURL bool, refusal *field.Error) {
	key, text := spec.Source()
	if key == application.ManifestKey {
		return source, false, nil
	}
	source, isURL, err := application.ParseSource(key, text)
	if err != nil {
		return source, isURL, invalid("data."+key, err.Error())
	}
	return source, isURL, nil
}

// resourcesOf returns the resources of the spec. They are those of the manifest or, without one,
// the translation of a template or an archive (step 0).
func resourcesOf(spec application.Spec) ([]any, error) {
	key, text := spec.Source()
	if key == application.ManifestKey {
		text, err := spec.ManifestText()
		if err != nil {
			return nil, err
		}
		return manifest.Decode([]byte(text))
	}
	_, isURL, err := application.ParseSource(key, text)
	switch {
	case err != nil:
		return nil, err
	case isURL && spec.Fetched == "":
		return nil, errors.New("the content of the URL is not fetched yet")
	case isURL:
		return manifest.Decode([]byte(spec.Fetched))
	case key == application.CSARKey:
		return explained("Invalid CSAR archive", text, tosca.TranslateArchive)
	}
	return explained("Invalid TOSCA template content", text, tosca.Translate)
}

// explained translates a text. Its errors begin with Krake's phrases.
func explained(words, text string, translate func([]byte) ([]any, error)) ([]any, error) {
	resources, err := translate([]byte(text))
	if err != nil {
		return nil, errors.New(words + ": " + strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return resources, nil
}

// IsOfTranslation reports whether the refusals are about a template or an archive itself, not about
// its translation.
func IsOfTranslation(refusals field.ErrorList) bool {
	return slices.ContainsFunc(refusals, func(refusal *field.Error) bool {
		return refusal.Field == "data."+application.ToscaKey || refusal.Field == "data."+application.CSARKey
	})
}

// Relocate returns refusals of resources with places that the user knows. For translated resources,
// that is the number of the node template.
func Relocate(refusals field.ErrorList, spec application.Spec) field.ErrorList {
	key, _ := spec.Source()
	if key == application.ManifestKey {
		return refusals
	}
	relocated := make(field.ErrorList, 0, len(refusals))
	for _, refusal := range refusals {
		moved := *refusal
		moved.Field = relocate(moved.Field, key)
		relocated = append(relocated, &moved)
	}
	return relocated
}

// RelocateTexts is [Relocate] for warnings.
func RelocateTexts(texts []string, spec application.Spec) []string {
	key, _ := spec.Source()
	relocated := make([]string, 0, len(texts))
	for _, text := range texts {
		relocated = append(relocated, relocate(text, key))
	}
	return relocated
}

func relocate(text, key string) string {
	if rest, ok := strings.CutPrefix(text, "data."+application.ManifestKey); ok {
		return "data." + key + rest
	}
	return text
}
