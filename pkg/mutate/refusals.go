package mutate

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// maxRefusals bounds the mistakes that one answer names.
const maxRefusals = 100

// atMost returns the first refusals, and the number of the others.
func atMost(refusals field.ErrorList) field.ErrorList {
	if more := len(refusals) - maxRefusals; more > 0 {
		return append(refusals[:maxRefusals:maxRefusals], invalid("data", fmt.Sprintf("there are %d more mistakes", more)))
	}
	return refusals
}

// invalid returns a refusal that does not repeat the value, which may be secret.
func invalid(path, detail string) *field.Error {
	return &field.Error{Type: field.ErrorTypeInvalid, Field: path, BadValue: field.OmitValueType{}, Detail: detail}
}

func forbidden(path, detail string) *field.Error {
	return &field.Error{Type: field.ErrorTypeForbidden, Field: path, Detail: detail}
}

// ResourcePath returns the place of a resource in a ConfigMap: data.spec.manifest[0]. [Relocate] finds
// it in other sources.
func ResourcePath(i int) string { return fmt.Sprintf("data.%s[%d]", application.ManifestKey, i) }

const schemasPath = "data." + application.ObserverSchemaKey

func schemaPath(i int) string { return fmt.Sprintf("%s[%d]", schemasPath, i) }

func annotationPath(name string) string { return "metadata.annotations[" + name + "]" }

// Summary returns the refusals as one line.
func Summary(refusals field.ErrorList) string {
	texts := make([]string, 0, len(refusals))
	for _, refusal := range refusals {
		texts = append(texts, refusal.Error())
	}
	return strings.Join(texts, "; ")
}
