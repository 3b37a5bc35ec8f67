package apitypes

import (
	"fmt"
	"reflect"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Types are the types of an API. They are safe for concurrent use.
type Types struct {
	converter managedfields.TypeConverter
}

// BuiltIn gives the types that client-go knows. The first call takes some tens
// of milliseconds and a mebibyte of memory, others nothing.
func BuiltIn() *Types { return builtIn() }

var builtIn = sync.OnceValue(func() *Types {
	return &Types{converter: applyconfigurations.NewTypeConverter(goTypes())}
})

// goTypes knows the Go types of the API: those of client-go and the
// CustomResourceDefinition.
var goTypes = sync.OnceValue(func() *runtime.Scheme {
	known := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(known)) // fails for two types of one name only
	utilruntime.Must(apiextensionsv1.AddToScheme(known))
	return known
})

// FromOpenAPI gives the types of a cluster, from the schemas of its OpenAPI v3
// documents: components.schemas, by name. Documents of several groups may be
// put together.
func FromOpenAPI(schemas map[string]*spec.Schema) (*Types, error) {
	converter, err := managedfields.NewTypeConverter(schemas, false)
	if err != nil {
		return nil, fmt.Errorf("read the types of the API: %w", err)
	}
	return &Types{converter: converter}, nil
}

// Of gives the type of a resource, nil if it is not known.
func (t *Types) Of(id manifest.ID) schema.Type {
	var empty unstructured.Unstructured
	empty.SetAPIVersion(id.APIVersion)
	empty.SetKind(id.Kind)
	value, err := t.converter.ObjectToTyped(&empty)
	if err != nil {
		return nil // there is no other reason for an object without fields
	}
	return place{schema: value.Schema(), ref: value.TypeRef()}
}

// Refine gives the schema with all that is known of the type of its resource:
// its lists are aligned by key, and the server's form of a desired value is as
// good as the value itself. It holds for this desired object; for another it
// knows the keys, and the forms of the values that are the same.
func (t *Types) Refine(observed schema.Schema, desired map[string]any) schema.Schema {
	return AcceptWritten(observed.Align(t.Of(observed.ID())), desired)
}

// AcceptWritten gives the schema under which the server's form of each desired
// value is as good as the value itself. Of a type that is not built in, values
// are compared by value; of a built-in type whose shape the object has not, as
// they are.
func AcceptWritten(observed schema.Schema, desired map[string]any) schema.Schema {
	written, err := Written(desired)
	switch {
	case runtime.IsNotRegisteredError(err):
		return observed.ByValue()
	case err != nil:
		return observed
	}
	return observed.Accept(observed.Forms(desired, written))
}

// place is a type within the type of a resource.
type place struct {
	schema *smd.Schema
	ref    smd.TypeRef
}

func (p place) resolve() smd.Atom {
	atom, _ := p.schema.Resolve(p.ref) // an unknown type is one without parts
	return atom
}

// Field implements schema.Type.
func (p place) Field(name string) schema.Type {
	fields := p.resolve().Map
	if fields == nil {
		return nil
	}
	if known, ok := fields.FindField(name); ok {
		return place{p.schema, known.Type}
	}
	return place{p.schema, fields.ElementType}
}

// Element implements schema.Type.
func (p place) Element() schema.Type {
	if list := p.resolve().List; list != nil {
		return place{p.schema, list.ElementType}
	}
	return nil
}

// plain gives a default as JSON has it. The zero of a Go type is none.
func plain(value any) any {
	switch value := value.(type) {
	case int:
		return plain(int64(value))
	case string, bool, int64, float64:
		if !reflect.ValueOf(value).IsZero() {
			return value
		}
	}
	return nil
}

// Keys implements schema.Type.
func (p place) Keys() []schema.Key {
	list := p.resolve().List
	if list == nil || list.ElementRelationship != smd.Associative {
		return nil
	}
	element := place{p.schema, list.ElementType}.resolve()
	keys := make([]schema.Key, 0, len(list.Keys))
	for _, name := range list.Keys {
		key := schema.Key{Name: name}
		if element.Map != nil {
			field, _ := element.Map.FindField(name)
			key.Default = plain(field.Default)
		}
		keys = append(keys, key)
	}
	return keys
}
