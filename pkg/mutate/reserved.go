package mutate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// checkReserved refuses keys of our domain at any place. Controllers copy labels and annotations to
// other objects, which would copy the marks of ownership.
func checkReserved(document map[string]any, at string) field.ErrorList {
	return search(document, at, func(step, _ any) *field.Error {
		key, _ := step.(string)
		switch {
		case key == application.FormatAnnotation:
			return forbidden("", "an Application cannot contain Applications: create this one separately")
		case key == application.AggregateLabel && isClusterRole(document):
			return nil // the API server checks that the writer has the rights that it gives to the agent
		case strings.Contains(key, "/") && manifest.IsReserved(key):
			return forbidden("", fmt.Sprintf("keys of %s are set by the agent: leave it out", application.Domain))
		}
		return nil
	})
}

func isClusterRole(document map[string]any) bool {
	id, _ := manifest.Identify(document)
	return id.GroupVersionKind().GroupKind() == rbacv1.SchemeGroupVersion.WithKind("ClusterRole").GroupKind()
}

// maxLength is the longest list that an observer schema can require. A minimum that no list reaches
// would be permanent drift.
const maxLength = 10_000

func checkLengths(document map[string]any, at string) field.ErrorList {
	return search(document, at, func(_, value any) *field.Error {
		items, _ := value.([]any)
		if len(items) == 0 {
			return nil
		}
		control, _ := items[len(items)-1].(map[string]any)
		for key, value := range control {
			if length, ok := value.(int64); ok && length > maxLength && schema.IsLengthKey(key) {
				return invalid("", fmt.Sprintf("a length of more than %d: set it lower, or set the maximum to 0 for no bound", maxLength))
			}
		}
		return nil
	})
}

// search calls refuse for every field and item of a document, with its name or index. It returns
// the refusals with their places.
func search(document map[string]any, at string, refuse func(step, value any) *field.Error) field.ErrorList {
	s := searcher{at: at, refuse: refuse}
	s.in(document)
	return s.refusals
}

// searcher stores the place as steps, and makes paths only for refusals. All paths together would
// be many times as long as the document.
type searcher struct {
	at       string
	steps    []any
	refuse   func(step, value any) *field.Error
	refusals field.ErrorList
}

func (s *searcher) in(value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			s.step(key, value[key])
		}
	case []any:
		for i, item := range value {
			s.step(i, item)
		}
	}
}

func (s *searcher) step(step, value any) {
	if len(s.refusals) > maxRefusals {
		return
	}
	s.steps = append(s.steps, step)
	if refusal := s.refuse(step, value); refusal != nil {
		refusal.Field = s.place()
		s.refusals = append(s.refusals, refusal)
	}
	s.in(value)
	s.steps = s.steps[:len(s.steps)-1]
}

// place returns the path as in other refusals: spec.ports[0].name, and
// labels[krake.dev/state] for a key that is no plain name.
func (s *searcher) place() string {
	var b strings.Builder
	b.WriteString(s.at)
	for _, step := range s.steps {
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
