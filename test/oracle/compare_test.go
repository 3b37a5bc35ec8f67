package oracle

import (
	"maps"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/kit"
)

func yamlOf(object map[string]any) string {
	text, err := yaml.Marshal(object)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// touched finds fields that the repair changed although the change had not touched them.
func touched(before, drifted, final *unstructured.Unstructured) (complaint string) {
	was, is := map[string]bool{}, map[string]bool{}
	paths(kit.Content(before), kit.Content(drifted), "", was)
	paths(kit.Content(before), kit.Content(final), "", is)
	for path := range is {
		reached := false
		for other := range was {
			reached = reached || strings.HasPrefix(path, other)
		}
		if !reached {
			return "the repair changed " + path
		}
	}
	return ""
}

// paths collects where two values differ. A list is one value.
func paths(a, b any, path string, into map[string]bool) {
	fields, ok := a.(map[string]any)
	others, okToo := b.(map[string]any)
	if !ok || !okToo {
		if !cmp.Equal(a, b) {
			into[path] = true
		}
		return
	}
	for name := range fields {
		paths(fields[name], others[name], path+"/"+name, into)
	}
	for name := range others {
		if _, both := fields[name]; !both {
			into[path+"/"+name] = true
		}
	}
}

// isOfControllers reports a field that others write if it is not observed: the former name of serviceAccountName, which the API server keeps equal,
// and finalizers.
func isOfControllers(name, path string) bool {
	return name == "serviceAccount" || path == "/metadata/finalizers"
}

// kept checks the fields outside of lists, by the observer schema alone. An observed field is as it
// was before the change, and any other field is as the change left it. A map that its type declares
// atomic has one writer, and is restored as a whole.
func kept(observed any, kind schema.Type, before, drifted, final any, path string) (complaint string) {
	fields, isObject := observed.(map[string]any)
	switch {
	case observed == nil && !isRestored(before, final):
		return "observed, and not restored: " + path
	case !isObject, len(fields) == 0, kind != nil && kind.Structure() == schema.AtomicMap:
		return ""
	}
	was, _ := before.(map[string]any)
	then, _ := drifted.(map[string]any)
	is, _ := final.(map[string]any)
	for _, objects := range []map[string]any{was, then, is} {
		for name := range objects {
			at := path + "/" + name
			if part, isObserved := fields[name]; isObserved {
				if complaint := kept(part, typeOf(kind, name), was[name], then[name], is[name], at); complaint != "" {
					return complaint
				}
				continue
			}
			// The API server may add a default to what has been restored. A value that excludes an observed
			// one beside it is removed (ADR 064).
			if isOfControllers(name, at) {
				continue
			}
			isFormer := cmp.Equal(was[name], is[name])
			isExcluded := is[name] == nil && slices.ContainsFunc(slices.Collect(maps.Keys(fields)), func(other string) bool { return !cmp.Equal(was[other], then[other]) })
			if !cmp.Equal(then[name], is[name]) && (!isFormer || then[name] != nil && !isExcluded) {
				return "not observed, and changed: " + at
			}
		}
	}
	return ""
}

// isRestored reports whether a value is as before. One that the manifest does not have is learned.
func isRestored(before, final any) bool { return before == nil || cmp.Equal(before, final) }

// observedPart returns the part of a manifest that a custom schema observes. It leaves out lists, and maps that
// their type declares atomic: an apply of a part of them removes the others' elements and fields, which such a
// schema leaves alone.
func observedPart(observed any, kind schema.Type, value any) (part any, some bool) {
	fields, isObject := observed.(map[string]any)
	if !isObject {
		_, isList := observed.([]any)
		return value, !isList
	}
	values, ok := value.(map[string]any)
	if !ok || kind != nil && kind.Structure() == schema.AtomicMap {
		return nil, false
	}
	parts := map[string]any{}
	for name, value := range values {
		if inner, isObserved := fields[name]; isObserved {
			if part, some := observedPart(inner, typeOf(kind, name), value); some {
				parts[name] = part
			}
		}
	}
	return parts, len(parts) > 0
}

// typeOf returns the type of a field; nil if it is not known.
func typeOf(kind schema.Type, field string) schema.Type {
	if kind == nil {
		return nil
	}
	return kind.Field(field)
}
