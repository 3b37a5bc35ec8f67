package view

import (
	"errors"
	"fmt"

	"github.com/krake-observer/krake-observer/internal/cli/draft"
	"github.com/krake-observer/krake-observer/internal/compose"
	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// ParsePath parses a path below an object, see [schema.ParsePath].
func ParsePath(text string) (schema.Path, error) {
	path, err := schema.ParsePath(text)
	if err != nil {
		return nil, err
	}
	if len(path) == 0 || path[0].Index >= 0 {
		return nil, errors.New("the path does not begin with a field: name one, as spec.replicas")
	}
	return path, nil
}

// Explanation says why one path of one object is observed, or is not.
type Explanation struct {
	Expected plan.Expected
	path     schema.Path
	// known are the steps of the path that the mangled observer schema has, and last is what
	// it has there.
	known schema.Path
	last  any
	// Custom is the user's schema of the object, its tree nil if there is none.
	Custom draft.Located
}

// Explain returns one for each object of an Application.
func Explain(app *application.Application, expected []plan.Expected, path schema.Path) []Explanation {
	schemas := draft.ResourcesIn(compose.Documents([]byte(app.Spec.ObserverSchema)))
	var custom, ids []manifest.ID
	for _, document := range schemas {
		object, _ := document.Value.(map[string]any)
		id, err := manifest.Identify(object)
		if err != nil { // admission refuses it
			id = manifest.ID{}
		}
		custom = append(custom, id)
	}
	explanations := make([]Explanation, len(expected))
	for i, e := range expected {
		known, last := followed(e.Mangled.Document(), path)
		explanations[i] = Explanation{Expected: e, path: path, known: known, last: last}
		ids = append(ids, e.ID)
	}
	for i, partner := range manifest.PairNamesakes(custom, ids) {
		if partner >= 0 {
			explanations[partner].Custom = schemas[i]
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
func (x Explanation) String() string {
	return x.Expected.ID.String() + ": " + x.path.String() + " " + x.Text()
}

// Text completes the sentence that begins with the path.
func (x Explanation) Text() string {
	switch {
	case !lens.IsComposite(x.last):
		return "is observed: " + x.why() + x.value()
	case len(x.known) == len(x.path):
		return "is looked into, and observed in part: " + x.why()
	}
	return "is not observed: " + x.whyNot()
}

// why returns the reason for which a field is observed.
func (x Explanation) why() string {
	whole := ""
	if len(x.known) < len(x.path) {
		whole = ", which has " + x.known.String() + " observed as a whole"
	}
	switch {
	case lens.IsIdentity(x.known) && x.known.String() != "metadata.namespace":
		return "it is of the identity of the object, and never differs"
	case x.Custom.Tree != nil:
		line, all := x.Custom.Find(x.known.String())
		if !all {
			return "a hook of the Application has added it"
		}
		return fmt.Sprintf("line %d of data.%s says so%s", line, application.ObserverSchemaKey, whole)
	case schema.ValueAt(x.Expected.Manifest, x.known) == nil:
		return "a hook of the Application has added it"
	}
	return "the object has no observer schema, so that all is observed that the manifest says" + whole
}

// value says what is desired, if the manifest does not say that.
func (x Explanation) value() string {
	switch desired := schema.ValueAt(x.Expected.Desired, x.path); {
	case schema.ValueAt(x.Expected.Manifest, x.path) != nil || lens.IsIdentity(x.path):
		return ""
	case desired != nil:
		return "; its value was learned from the cluster, and is pinned: " + lens.Redactor{Kind: x.Expected.ID.Kind}.Shown(x.path, desired)
	}
	return "; no value is known yet: the first one that the agent sees is pinned"
}

// whyNot returns the reason for which a field is not observed.
func (x Explanation) whyNot() string {
	if items, ok := x.last.([]any); ok {
		return x.beyond(items)
	}
	if schema.IsServerOwned(x.path) {
		return "only the server sets it, whatever manifest and observer schema say"
	}
	if x.Custom.Tree != nil {
		line, _ := x.Custom.Find(x.known.String())
		return fmt.Sprintf("the observer schema does not name it (line %d of data.%s is where it would be)", line, application.ObserverSchemaKey)
	}
	return "the object has no observer schema, so that all is observed that the manifest says, and it does not say this"
}

// beyond returns the reason for elements of a list that its schema does not have.
func (x Explanation) beyond(items []any) string {
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
