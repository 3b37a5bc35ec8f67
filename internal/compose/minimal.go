package compose

import (
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/internal/apitypes"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Minimal returns an observer schema for each object, in the same order, that observes only what
// makes it work: images, selectors, ports, and the number of replicas unless an autoscaler sets
// it. Lists may become longer, because sidecars are added to them. Of any other object only its
// existence is observed.
func Minimal(objects []Object) ([][]byte, error) {
	scaled := targetsOf(objects)
	schemas := make([][]byte, 0, len(objects))
	for _, object := range objects {
		whole, err := schema.Default(object.Value)
		if err != nil {
			return nil, err
		}
		m := minimal{wanted: wantedOf(object, slices.Contains(scaled, target{object.Kind, object.Name, object.Namespace}))}
		document, _ := m.object(whole.Document(), nil).(map[string]any)
		text, err := yaml.Marshal(document)
		if err != nil {
			return nil, err
		}
		schemas = append(schemas, text)
	}
	return schemas, nil
}

// target is an object that an autoscaler scales.
type target struct{ kind, name, namespace string }

// targetsOf finds the targets of autoscalers.
func targetsOf(objects []Object) []target {
	var found []target
	for _, object := range objects {
		if kind, name := apitypes.ScaleTarget(object.Value); name != "" {
			found = append(found, target{kind, name, object.Namespace})
		}
	}
	return found
}

// anyItem stands for the index of a list in a pattern.
const anyItem = "*"

// wantedOf returns the patterns of the paths that are observed. Everything below one is.
func wantedOf(object Object, isScaled bool) [][]string {
	if object.APIVersion == "v1" && object.Kind == "Service" {
		wanted := [][]string{{"spec", "selector"}}
		for _, name := range []string{"name", "port", "targetPort", "protocol"} {
			wanted = append(wanted, []string{"spec", "ports", anyItem, name})
		}
		return wanted
	}
	wanted := [][]string{{"spec", "selector"}, {"spec", "podSelector"}}
	if !isScaled {
		wanted = append(wanted, []string{"spec", "replicas"})
	}
	path, runsPods := apitypes.PodPath(object.ID)
	if !runsPods {
		return wanted
	}
	path = append(slices.Clip(path), "spec")
	for _, containers := range []string{"containers", "initContainers"} {
		for _, name := range []string{"name", "image", "ports"} {
			wanted = append(wanted, slices.Concat(path, []string{containers, anyItem, name}))
		}
	}
	return wanted
}

// minimal reduces a default observer schema to the wanted paths.
type minimal struct{ wanted [][]string }

// nothing stands for a place that is not observed: a nil is an observed value.
type nothing struct{}

func (m minimal) node(node any, path []string) any {
	if m.isWanted(path) {
		return m.open(node)
	}
	switch node := node.(type) {
	case map[string]any:
		return m.object(node, path)
	case []any:
		return m.list(node, path)
	}
	return nothing{}
}

func (m minimal) isWanted(path []string) bool {
	return slices.ContainsFunc(m.wanted, func(pattern []string) bool { return slices.Equal(pattern, path) })
}

// object keeps the identity, which is all that an observer schema needs.
func (m minimal) object(fields map[string]any, path []string) any {
	kept := map[string]any{}
	for name, field := range fields {
		if _, isText := field.(string); isText {
			kept[name] = field
			continue
		}
		if value := m.node(field, append(slices.Clip(path), name)); value != any(nothing{}) {
			kept[name] = value
		}
	}
	if len(kept) == 0 {
		return nothing{}
	}
	return kept
}

// list keeps all items if it keeps any, because items are found by their place.
func (m minimal) list(items []any, path []string) any {
	elements := items[:len(items)-1]
	kept := make([]any, 0, len(items))
	keeps := false
	for _, element := range elements {
		value := m.node(element, append(slices.Clip(path), anyItem))
		if value == any(nothing{}) {
			value = map[string]any{}
		} else {
			keeps = true
		}
		kept = append(kept, value)
	}
	if !keeps {
		return nothing{}
	}
	return append(kept, atLeast(len(elements)))
}

// open lets all lists of a node become longer.
func (m minimal) open(node any) any {
	switch node := node.(type) {
	case map[string]any:
		opened := map[string]any{}
		for name, field := range node {
			opened[name] = m.open(field)
		}
		return opened
	case []any:
		opened := make([]any, 0, len(node))
		for _, element := range node[:len(node)-1] {
			opened = append(opened, m.open(element))
		}
		return append(opened, atLeast(len(node)-1))
	}
	return node
}

// atLeast is the end of a list in an observer schema, which sets its bounds.
func atLeast(length int) map[string]any {
	return map[string]any{schema.MinLengthKey: int64(length), schema.MaxLengthKey: int64(0)}
}
