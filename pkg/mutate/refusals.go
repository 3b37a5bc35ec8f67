package mutate

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// maxRefusals bounds what is told at once: more than anybody mends at once.
const maxRefusals = 100

// atMost leaves the first refusals, and says how many more there are.
func atMost(refusals field.ErrorList) field.ErrorList {
	if more := len(refusals) - maxRefusals; more > 0 {
		return append(refusals[:maxRefusals:maxRefusals], invalid("data", fmt.Sprintf("there are %d more mistakes", more)))
	}
	return refusals
}

// invalid is a refusal that does not repeat the value: it may be a secret one.
func invalid(path, detail string) *field.Error {
	return &field.Error{Type: field.ErrorTypeInvalid, Field: path, BadValue: field.OmitValueType{}, Detail: detail}
}

func forbidden(path, detail string) *field.Error {
	return &field.Error{Type: field.ErrorTypeForbidden, Field: path, Detail: detail}
}

func resourcePath(i int) string { return fmt.Sprintf("data.%s[%d]", application.ManifestKey, i) }

const schemasPath = "data." + application.ObserverSchemaKey

func schemaPath(i int) string { return fmt.Sprintf("%s[%d]", schemasPath, i) }

// Summary gives the refusals as one line.
func Summary(refusals field.ErrorList) string {
	texts := make([]string, 0, len(refusals))
	for _, refusal := range refusals {
		texts = append(texts, refusal.Error())
	}
	return strings.Join(texts, "; ")
}
