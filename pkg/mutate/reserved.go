package mutate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// checkReserved refuses keys of our domain wherever they are: the marks of
// ownership, in whatever a controller may copy to other objects, and with them
// an Application within an Application.
func checkReserved(document map[string]any, at string) field.ErrorList {
	search := reservedKeys{at: at}
	search.in(document)
	return search.refusals
}

// reservedKeys looks for keys of our domain. The place is kept as steps, and
// written out for what is found only: the paths of everything would be many
// times as long as the document.
type reservedKeys struct {
	at       string
	steps    []any
	refusals field.ErrorList
}

func (r *reservedKeys) in(value any) {
	if len(r.refusals) > maxRefusals {
		return
	}
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			r.steps = append(r.steps, key)
			if strings.Contains(key, "/") && application.IsReserved(key) {
				r.refusals = append(r.refusals, forbidden(r.place(), reasonOf(key)))
			}
			r.in(value[key])
			r.steps = r.steps[:len(r.steps)-1]
		}
	case []any:
		for i, item := range value {
			r.steps = append(r.steps, i)
			r.in(item)
			r.steps = r.steps[:len(r.steps)-1]
		}
	}
}

func reasonOf(key string) string {
	if key == application.FormatAnnotation {
		return "an Application has no Applications: create this one by itself"
	}
	return fmt.Sprintf("keys of %s are set by the agent: leave it out", application.Domain)
}

// place gives the path as the other refusals have it: spec.ports[0].name, and
// labels[krake.dev/state] for a key that is no plain name.
func (r *reservedKeys) place() string {
	var b strings.Builder
	b.WriteString(r.at)
	for _, step := range r.steps {
		name, isKey := step.(string)
		name = shortened(name)
		switch {
		case !isKey:
			fmt.Fprintf(&b, "[%d]", step)
		case strings.ContainsAny(name, "./"):
			fmt.Fprintf(&b, "[%s]", name)
		default:
			b.WriteString("." + name)
		}
	}
	return b.String()
}

// maxStep bounds the length of a name in a path.
const maxStep = 320

func shortened(name string) string {
	if len(name) <= maxStep {
		return name
	}
	return strings.ToValidUTF8(name[:maxStep], "") + "..."
}
