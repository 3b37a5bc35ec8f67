package apitypes

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	gvk "k8s.io/apimachinery/pkg/runtime/schema"
	strictjson "sigs.k8s.io/json"
)

// Written gives an object of a built-in type as an API server would write it,
// but for the defaults that it would add. The object itself stays as it is. The
// error tells that the type is not known, or that the object has not its shape.
func Written(object map[string]any) (map[string]any, error) {
	apiVersion, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	typed, err := goTypes().New(gvk.FromAPIVersionAndKind(apiVersion, kind))
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("encode %s %s: %w", apiVersion, kind, err)
	}
	// As the server reads it: field names in their case, unknown ones dropped.
	if err := strictjson.UnmarshalCaseSensitivePreserveInts(text, typed); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", apiVersion, kind, err)
	}
	if secret, ok := typed.(*corev1.Secret); ok {
		secret.StringData = nil // it is written into data, and never read again
	}
	written, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, fmt.Errorf("write %s %s: %w", apiVersion, kind, err)
	}
	return written, nil
}
