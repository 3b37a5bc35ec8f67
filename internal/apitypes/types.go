package apitypes

import (
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Types are the types of an API. They are safe for concurrent use. Nil Types are the built-in ones.
type Types struct {
	converter managedfields.TypeConverter
	// isDefined reports that definitions describe the types, not Go types, which omit zeros.
	isDefined bool
}

// BuiltIn returns the types that client-go knows. The first call takes some tens of milliseconds and a
// mebibyte of memory.
func BuiltIn() *Types { return builtIn() }

var builtIn = sync.OnceValue(func() *Types {
	return &Types{converter: applyconfigurations.NewTypeConverter(goTypes())}
})

// Of returns the type of a resource, nil if it is not known.
func (t *Types) Of(id manifest.ID) schema.Type {
	if t == nil {
		t = BuiltIn()
	}
	var empty unstructured.Unstructured
	empty.SetAPIVersion(id.APIVersion)
	empty.SetKind(id.Kind)
	value, err := t.converter.ObjectToTyped(&empty)
	if err != nil {
		return nil // or a type without apiVersion and kind, which is no type of a resource
	}
	return place{schema: value.Schema(), ref: value.TypeRef(), isDefined: t.isDefined}
}

// Refine returns the schema with all known facts about the type of its resource. Its lists are
// aligned by key, and it accepts the server's form of each desired value of this object.
func (t *Types) Refine(observed schema.Schema, desired map[string]any) schema.Schema {
	return AcceptWritten(observed.Align(t.Of(observed.ID())), desired)
}

// AcceptWritten returns the schema that accepts the server's form of each desired value. It compares
// values of types that are not built in by value, and knows the form of their metadata. If an object does not
// have the shape of its type, the schema stays unchanged.
func AcceptWritten(observed schema.Schema, desired map[string]any) schema.Schema {
	written, err := Written(desired)
	switch {
	case runtime.IsNotRegisteredError(err):
		observed = observed.ByValue()
		if written, err = writtenMetadata(desired); err != nil {
			return observed
		}
	case err != nil:
		return observed
	}
	return observed.Accept(observed.Forms(desired, written))
}

// place is a type within the type of a resource.
type place struct {
	schema    *smd.Schema
	ref       smd.TypeRef
	isDefined bool
}

func (p place) at(ref smd.TypeRef) place { return place{p.schema, ref, p.isDefined} }

func (p place) resolve() smd.Atom {
	atom, _ := p.schema.Resolve(p.ref) // an unknown type has no parts
	return atom
}

// Field implements schema.Type.
func (p place) Field(name string) schema.Type {
	fields := p.resolve().Map
	if fields == nil {
		return nil
	}
	if known, ok := fields.FindField(name); ok {
		return p.at(known.Type)
	}
	return p.at(fields.ElementType)
}

// Element implements schema.Type.
func (p place) Element() schema.Type {
	if list := p.resolve().List; list != nil {
		return p.at(list.ElementType)
	}
	return nil
}

// Structure implements schema.Type.
func (p place) Structure() schema.Structure {
	switch atom := p.resolve(); {
	case atom.List != nil && atom.List.ElementRelationship != smd.Associative:
		return schema.AtomicList
	case atom.List != nil && len(atom.List.Keys) > 0:
		return schema.KeyedList
	case atom.List != nil:
		return schema.SetList
	case atom.Map == nil:
		return schema.Plain
	case atom.Map.ElementRelationship == smd.Atomic:
		return schema.AtomicMap
	case len(atom.Map.Fields) > 0 && atom.Map.ElementType == (smd.TypeRef{}): // not x-kubernetes-preserve-unknown-fields
		return schema.Struct
	}
	return schema.Map
}

// plain returns a default as a JSON value, nil for the zero of a Go type.
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
	keys := make([]schema.Key, 0, len(list.Keys))
	for _, name := range list.Keys {
		keys = append(keys, p.Key(name))
	}
	return keys
}

// Key implements schema.Type.
func (p place) Key(name string) schema.Key {
	key := schema.Key{Name: name, KeepsZero: p.isDefined}
	list := p.resolve().List
	if list == nil {
		return key
	}
	fields := p.at(list.ElementType).resolve().Map
	if fields == nil {
		return key
	}
	switch field, _ := fields.FindField(name); {
	case p.isDefined:
		key.Default = field.Default
	default:
		key.Default = plain(field.Default)
	}
	return key
}
