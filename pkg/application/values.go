package application

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// ValuesFrom fills Secrets of the manifest with the values of another Secret.
type ValuesFrom struct {
	// Namespace and Name are those of the Secrets in the manifest. Without a namespace, all Secrets of the name are meant.
	Namespace, Name string
	// Source is the name of a Secret in the Application's namespace on the target.
	Source string
}

// Fills reports whether a resource with this identity in the manifest is meant.
func (v ValuesFrom) Fills(id manifest.ID) bool {
	return id.APIVersion == "v1" && id.Kind == "Secret" && id.Name == v.Name && (v.Namespace == "" || id.Namespace == v.Namespace)
}

// SourcesFor returns the Secrets that fill a resource of the manifest, in the order of the annotation. It returns nil for a resource
// that is not filled.
func SourcesFor(values []ValuesFrom, id manifest.ID) []string {
	var sources []string
	for _, value := range values {
		if value.Fills(id) {
			sources = append(sources, value.Source)
		}
	}
	return sources
}

// maxValuesFrom bounds the requests that one Application causes each minute.
const maxValuesFrom = 32

// ParseValuesFrom reads the value of [ValuesFromAnnotation].
func ParseValuesFrom(text string) ([]ValuesFrom, error) {
	var values []ValuesFrom
	for entry := range strings.SplitSeq(text, ",") {
		secret, source, found := strings.Cut(strings.TrimSpace(entry), "=")
		if !found {
			return nil, errors.New("it has to be SECRET=SOURCE, the name of a Secret in the manifest and the name of the Secret with its values, with a comma between several")
		}
		value := ValuesFrom{Name: secret, Source: source}
		if namespace, name, ok := strings.Cut(secret, "/"); ok {
			if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
				return nil, fmt.Errorf("%q is no namespace: %s", namespace, problems[0])
			}
			value.Namespace, value.Name = namespace, name
		}
		for _, name := range []string{value.Name, value.Source} {
			if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
				return nil, fmt.Errorf("%q is no name of a Secret: %s", name, problems[0])
			}
		}
		values = append(values, value)
	}
	if len(values) > maxValuesFrom {
		return nil, fmt.Errorf("it has %d entries; the maximum is %d", len(values), maxValuesFrom)
	}
	return values, nil
}
