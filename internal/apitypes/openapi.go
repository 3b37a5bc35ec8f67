package apitypes

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// FromOpenAPI returns the types in a server's OpenAPI v3 document of one group and version. Only the types stay in
// memory, without descriptions and paths.
func FromOpenAPI(document []byte) (*Types, error) {
	var read struct {
		Components struct {
			Schemas map[string]*spec.Schema `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(document, &read); err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	converter, err := managedfields.NewTypeConverter(read.Components.Schemas, false)
	if err != nil {
		return nil, fmt.Errorf("read the types of the OpenAPI document: %w", err)
	}
	return &Types{converter: converter, isDefined: true}, nil
}

// IsBuiltIn reports whether client-go, or the API of CustomResourceDefinitions, has a Go type for the kind of an object.
func IsBuiltIn(id manifest.ID) bool { return goTypes().Recognizes(id.GroupVersionKind()) }
