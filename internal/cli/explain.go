package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/plan"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// parsePath reads a path as it is printed: spec.ports[0].port, and
// metadata.labels["app.kubernetes.io/name"], where the quotes may be missing.
func parsePath(text string) (schema.Path, error) {
	var path schema.Path
	rest := strings.TrimPrefix(text, ".")
	for rest != "" {
		var found schema.Step
		var ok bool
		if found, rest, ok = cutStep(rest); !ok {
			return nil, fmt.Errorf(`%q is no path: it is of the form spec.ports[0].port, or metadata.labels["app.kubernetes.io/name"]`, text)
		}
		path = append(path, found)
	}
	if len(path) == 0 || path[0].Index >= 0 {
		return nil, errors.New("the path begins with no field: name one, as spec.replicas")
	}
	return path, nil
}

func cutStep(text string) (found schema.Step, rest string, ok bool) {
	if inner, bracketed := strings.CutPrefix(text, "["); bracketed {
		if quoted, err := strconv.QuotedPrefix(inner); err == nil {
			name, err := strconv.Unquote(quoted)
			rest, closed := strings.CutPrefix(inner[len(quoted):], "]")
			return schema.Step{Field: name, Index: -1}, strings.TrimPrefix(rest, "."), err == nil && closed
		}
		inside, rest, closed := strings.Cut(inner, "]")
		rest = strings.TrimPrefix(rest, ".")
		if index, err := strconv.Atoi(inside); err == nil {
			return schema.Step{Index: index}, rest, closed && index >= 0
		}
		return schema.Step{Field: inside, Index: -1}, rest, closed && inside != ""
	}
	end := strings.IndexAny(text, ".[")
	if end < 0 {
		end = len(text)
	}
	return schema.Step{Field: text[:end], Index: -1}, strings.TrimPrefix(text[end:], "."), end > 0
}

// explanation is what there is to say of one path of one object.
type explanation struct {
	expected plan.Expected
	path     schema.Path
	// custom is the user's schema of the object, its tree nil if there is none.
	custom located
}

// explanationsOf gives one for each object of an Application.
func explanationsOf(app *application.Application, expected []plan.Expected, path schema.Path) []explanation {
	schemas := resourcesIn(fragments([]byte(app.Spec.ObserverSchema)))
	var custom, ids []manifest.ID
	for _, document := range schemas {
		object, _ := document.Value.(map[string]any)
		id, err := manifest.Identify(object)
		if err != nil { // admission refuses it
			id = manifest.ID{}
		}
		custom = append(custom, id)
	}
	explanations := make([]explanation, len(expected))
	for i, e := range expected {
		explanations[i] = explanation{expected: e, path: path}
		ids = append(ids, e.ID)
	}
	for i, partner := range manifest.PairNamesakes(custom, ids) {
		if partner >= 0 {
			explanations[partner].custom = schemas[i]
		}
	}
	return explanations
}

// String gives one sentence.
func (x explanation) String() string {
	reach := x.reach()
	var text string
	switch {
	case reach.isObserved():
		text = "is observed: " + x.why(reach) + x.value()
	case reach.isPart():
		text = "is looked into, and observed in part: " + x.why(reach)
	default:
		text = "is not observed: " + x.whyNot(reach)
	}
	return x.expected.ID.String() + ": " + x.path.String() + " " + text
}

// reach is how far an observer schema goes along a path.
type reach struct {
	// steps is how many of the path the schema has, of so many.
	steps, of int
	// last is what it says there.
	last any
}

func (r reach) isObserved() bool {
	switch r.last.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

func (r reach) isPart() bool { return r.steps == r.of }

func (x explanation) reach() reach {
	r := reach{of: len(x.path), last: any(x.expected.Mangled.Document())}
	for _, step := range x.path {
		switch parent := r.last.(type) {
		case map[string]any:
			value, ok := parent[step.Field]
			if !ok || step.Index >= 0 {
				return r
			}
			r.last = value
		case []any:
			if step.Index < 0 || step.Index >= len(parent)-1 {
				return r
			}
			r.last = parent[step.Index]
		default:
			return r
		}
		r.steps++
	}
	return r
}

// why tells what has a field observed.
func (x explanation) why(r reach) string {
	known := x.path[:r.steps]
	switch {
	case isIdentity(known) && known.String() != "metadata.namespace":
		return "it is of the identity of the object, and never differs"
	case x.custom.Tree != nil:
		line, all := x.custom.find(known.String())
		if !all {
			return "a hook of the Application has added it"
		}
		return fmt.Sprintf("line %d of data.%s says so%s", line, application.ObserverSchemaKey, x.whole(r))
	case along(x.expected.Manifest, known) == nil:
		return "a hook of the Application has added it"
	}
	return "the object has no observer schema, so that all is observed that the manifest says" + x.whole(r)
}

// whole tells of a field that lies in one that is observed as a whole.
func (x explanation) whole(r reach) string {
	if r.steps == r.of {
		return ""
	}
	return ", which has " + x.path[:r.steps].String() + " observed as a whole"
}

// value tells of a desired value that the manifest does not say.
func (x explanation) value() string {
	switch desired := along(x.expected.Desired, x.path); {
	case along(x.expected.Manifest, x.path) != nil || isIdentity(x.path):
		return ""
	case desired != nil:
		return "; its value was learned from the cluster, and is pinned: " + shown(sight{kind: x.expected.ID.Kind}, x.path, desired)
	}
	return "; no value is known yet: the first one that the agent sees is pinned"
}

// whyNot tells what keeps a field from being observed.
func (x explanation) whyNot(r reach) string {
	if items, ok := r.last.([]any); ok {
		return x.beyond(r, items)
	}
	if isServerOwned(x.expected.ID, x.path) {
		return "only the server sets it, whatever manifest and observer schema say"
	}
	if x.custom.Tree != nil {
		line, _ := x.custom.find(x.path[:r.steps].String())
		return fmt.Sprintf("the observer schema does not name it (line %d of data.%s is where it would be)", line, application.ObserverSchemaKey)
	}
	return "the object has no observer schema, so that all is observed that the manifest says, and it does not say this"
}

// beyond tells of elements that a schema does not look into.
func (x explanation) beyond(r reach, items []any) string {
	bounds, _ := items[len(items)-1].(map[string]any)
	least, most := bounds[schema.MinLengthKey], bounds[schema.MaxLengthKey]
	length := fmt.Sprintf("from %v to %v", least, most)
	switch most {
	case int64(0):
		length = fmt.Sprintf("at least %v", least)
	case least:
		length = fmt.Sprint(least)
	}
	return fmt.Sprintf("of the list %s, elements from index %d on count for its length only, which has to be %s",
		x.path[:r.steps], len(items)-1, length)
}

// isServerOwned tells if a field is left out of every schema.
func isServerOwned(id manifest.ID, path schema.Path) bool {
	var value any = true
	for _, step := range slices.Backward(path) {
		if step.Index >= 0 {
			value = true // what is in a list is of its field
			continue
		}
		value = map[string]any{step.Field: value}
	}
	object, _ := value.(map[string]any)
	metadata, _ := object["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["name"] = id.Name
	object["apiVersion"], object["kind"], object["metadata"] = id.APIVersion, id.Kind, metadata
	observed, err := schema.Default(object)
	if err != nil {
		return false
	}
	_, left := observed.WithoutServerOwned()
	return len(left) > 0
}
