package cli

import (
	"errors"
	"fmt"

	"github.com/krake-observer/krake-observer/internal/compose"
	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// parsePath parses a path below an object, see [schema.ParsePath].
func parsePath(text string) (schema.Path, error) {
	path, err := schema.ParsePath(text)
	if err != nil {
		return nil, err
	}
	if len(path) == 0 || path[0].Index >= 0 {
		return nil, errors.New("the path does not begin with a field: name one, as spec.replicas")
	}
	return path, nil
}

// explanation says why one path of one object is observed, or is not.
type explanation struct {
	expected plan.Expected
	path     schema.Path
	// known are the steps of the path that the mangled observer schema has, and last is what
	// it has there.
	known schema.Path
	last  any
	// custom is the user's schema of the object, its tree nil if there is none.
	custom located
}

// explanationsOf returns one for each object of an Application.
func explanationsOf(app *application.Application, expected []plan.Expected, path schema.Path) []explanation {
	schemas := resourcesIn(compose.Documents([]byte(app.Spec.ObserverSchema)))
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
		known, last := followed(e.Mangled.Document(), path)
		explanations[i] = explanation{expected: e, path: path, known: known, last: last}
		ids = append(ids, e.ID)
	}
	for i, partner := range manifest.PairNamesakes(custom, ids) {
		if partner >= 0 {
			explanations[partner].custom = schemas[i]
		}
	}
	return explanations
}

// followed returns as much of a path as an observer schema has, and what it has there. The last
// element of a list is its control dictionary, and no step leads there.
func followed(document map[string]any, path schema.Path) (known schema.Path, last any) {
	last = document
	for i, step := range path {
		switch parent := last.(type) {
		case map[string]any:
			value, ok := parent[step.Field]
			if !ok || step.Index >= 0 {
				return path[:i], last
			}
			last = value
		case []any:
			if step.Index < 0 || step.Index >= len(parent)-1 {
				return path[:i], last
			}
			last = parent[step.Index]
		default:
			return path[:i], last
		}
	}
	return path, last
}

// String returns one sentence.
func (x explanation) String() string {
	return x.expected.ID.String() + ": " + x.path.String() + " " + x.text()
}

// text completes the sentence that begins with the path.
func (x explanation) text() string {
	switch {
	case !lens.IsComposite(x.last):
		return "is observed: " + x.why() + x.value()
	case len(x.known) == len(x.path):
		return "is looked into, and observed in part: " + x.why()
	}
	return "is not observed: " + x.whyNot()
}

// why returns the reason for which a field is observed.
func (x explanation) why() string {
	whole := ""
	if len(x.known) < len(x.path) {
		whole = ", which has " + x.known.String() + " observed as a whole"
	}
	switch {
	case lens.IsIdentity(x.known) && x.known.String() != "metadata.namespace":
		return "it is of the identity of the object, and never differs"
	case x.custom.Tree != nil:
		line, all := x.custom.find(x.known.String())
		if !all {
			return "a hook of the Application has added it"
		}
		return fmt.Sprintf("line %d of data.%s says so%s", line, application.ObserverSchemaKey, whole)
	case schema.ValueAt(x.expected.Manifest, x.known) == nil:
		return "a hook of the Application has added it"
	}
	return "the object has no observer schema, so that all is observed that the manifest says" + whole
}

// value says what is desired, if the manifest does not say that.
func (x explanation) value() string {
	switch desired := schema.ValueAt(x.expected.Desired, x.path); {
	case schema.ValueAt(x.expected.Manifest, x.path) != nil || lens.IsIdentity(x.path):
		return ""
	case desired != nil:
		return "; its value was learned from the cluster, and is pinned: " + lens.Sight{Kind: x.expected.ID.Kind}.Shown(x.path, desired)
	}
	return "; no value is known yet: the first one that the agent sees is pinned"
}

// whyNot returns the reason for which a field is not observed.
func (x explanation) whyNot() string {
	if items, ok := x.last.([]any); ok {
		return x.beyond(items)
	}
	if schema.IsServerOwned(x.path) {
		return "only the server sets it, whatever manifest and observer schema say"
	}
	if x.custom.Tree != nil {
		line, _ := x.custom.find(x.known.String())
		return fmt.Sprintf("the observer schema does not name it (line %d of data.%s is where it would be)", line, application.ObserverSchemaKey)
	}
	return "the object has no observer schema, so that all is observed that the manifest says, and it does not say this"
}

// beyond returns the reason for elements of a list that its schema does not have.
func (x explanation) beyond(items []any) string {
	bounds, _ := items[len(items)-1].(map[string]any)
	least, most := bounds[schema.MinLengthKey], bounds[schema.MaxLengthKey]
	length := fmt.Sprintf("from %v to %v", least, most)
	switch most {
	case int64(0):
		length = fmt.Sprintf("at least %v", least)
	case least:
		length = fmt.Sprint(least)
	}
	return fmt.Sprintf("of the list %s, elements from index %d on count for its length only, which has to be %s", x.known, len(items)-1, length)
}
