package create

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json" // reads integers as such

	"github.com/krake-observer/krake-observer/internal/apitypes"
	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// propose returns an observer schema for a resource of a manifest. It leaves out what
// others write to the live object, which is nil if there is none. Without a resource, the
// schema observes what the author of the live object has written, without the defaults.
// The author is the manager that has set most of it. Types describe a kind that is not built in.
func propose(resource, live map[string]any, defaults []schema.Path, types *apitypes.Types) (proposal, error) {
	base := resource
	if resource == nil {
		base = live
	}
	observed, err := schema.Default(base)
	if err != nil {
		return proposal{}, fmt.Errorf("propose an observer schema: %w", err)
	}
	kind := types.Of(observed.ID())
	observed, ofServer := observed.WithoutServerOwned()
	observed = observed.Align(kind)
	p := proposer{live: live, fromLive: resource == nil, defaults: defaults, reasons: map[string]string{}, paths: map[string]schema.Path{}}
	p.id = observed.ID()
	p.weigh(observed.Values(base, live), writersOf(live))
	if p.fromLive && p.author == "" {
		return proposal{}, fmt.Errorf("%s %w: propose from a manifest, by -f", p.id, errNoAuthor)
	}
	for _, path := range ofServer {
		p.leave(schema.FieldPath(strings.Split(path, ".")...), onlyServer)
	}
	p.document, _ = p.node(sighted{observed.Document(), kind, base}, schema.Path{}).(map[string]any)
	return p.proposal, nil
}

var errNoAuthor = errors.New("has managedFields for its status only")

// lastApplied returns the object that kubectl apply has applied, without the namespace. It is
// nil for other objects. In managedFields, kubectl is the author of defaults as well.
func lastApplied(live map[string]any) map[string]any {
	var resource map[string]any
	if json.Unmarshal([]byte(env.AnnotationsOf(live)[corev1.LastAppliedConfigAnnotation]), &resource) != nil {
		return nil
	}
	unstructured.RemoveNestedField(resource, "metadata", "namespace")
	return resource
}

// The reasons for which a field is left out, beside its managers.
const (
	onlyServer   = "only the server sets it"
	notSettable  = "of the metadata, an Application sets labels and annotations only"
	ofAgent      = "the agent sets it"
	ofStatus     = "values of a Secret do not belong in the status, which all users who may read ConfigMaps can see"
	ofScheduler  = "the scheduler sets it"
	ofKubectl    = "kubectl stores there what it has applied"
	ofDefaults   = "the API server fills it in if no client sets it"
	notNecessary = "the namespace is that of the Application"
)

// proposer makes a proposal of what is observed by default.
type proposer struct {
	proposal

	live     map[string]any
	fromLive bool
	defaults []schema.Path
	// reasons has why values are left out, by their places.
	reasons map[string]string
	// paths are those of places in the live object.
	paths map[string]schema.Path
}

func (p *proposer) leave(path schema.Path, reason string) {
	p.left = append(p.left, leftOut{path, reason})
}

// weigh finds the author, and the reasons to leave out values.
func (p *proposer) weigh(values []schema.Value, writers []writer) {
	counts := make([]int, len(writers))
	writes := make([][]bool, len(values)) // by value, and then by writer
	for i, value := range values {
		for j := range value.Path {
			p.paths[value.Place[:j+1].String()] = value.Path[:j+1]
		}
		writes[i] = make([]bool, len(writers))
		for j, w := range writers {
			if value.Path != nil && w.owns(value.Path) {
				writes[i][j] = true
				counts[j]++
			}
		}
	}
	author := -1
	for j, w := range writers {
		if w.Subresource == "" && counts[j] > 0 && (author < 0 || counts[j] > counts[author]) {
			author, p.author = j, w.Name()
			p.unsaid = p.fromLive && w.Operation != string(metav1.ManagedFieldsOperationApply)
		}
	}
	for i, value := range values {
		if reason := p.reason(value.Place, writers, writes[i], author); reason != "" {
			p.reasons[value.Place.String()] = reason
		}
	}
}

// reason returns why a value is left out, empty if it is observed.
func (p *proposer) reason(place schema.Path, writers []writer, writes []bool, author int) string {
	if reason := p.unfit(place); reason != "" {
		return reason
	}
	var others []string
	for j, w := range writers {
		switch {
		case !writes[j]:
		case j == author || w.Name() == p.author:
			if slices.ContainsFunc(p.defaults, func(path schema.Path) bool { return lens.IsBelow(place, path) }) {
				return ofDefaults
			}
			return ""
		case !slices.Contains(others, w.Name()):
			others = append(others, w.Name())
		}
	}
	switch {
	case len(others) == 1:
		return others[0] + " writes it"
	case len(others) > 1:
		return strings.Join(others, " and ") + " write it"
	case p.fromLive:
		return onlyServer
	}
	return ""
}

// unfit returns why no observer schema of an Application may have a field.
func (p *proposer) unfit(path schema.Path) string {
	switch first := path[0].Field; {
	case first == "metadata":
		return p.unfitMetadata(path)
	case p.id.APIVersion != "v1":
		return ""
	case p.id.Kind == "Secret" && (first == "data" || first == "stringData"):
		return ofStatus
	case p.id.Kind == "Pod" && path.String() == "spec.nodeName":
		return ofScheduler
	}
	return ""
}

func (p *proposer) unfitMetadata(path schema.Path) string {
	field, last := "", path[len(path)-1].Field
	if len(path) > 1 {
		field = path[1].Field
	}
	switch {
	case field == "namespace" && p.fromLive:
		return notNecessary
	case field == "namespace":
		return ""
	case field != "labels" && field != "annotations":
		return notSettable
	case manifest.IsReserved(last):
		return ofAgent
	case last == corev1.LastAppliedConfigAnnotation:
		return ofKubectl
	}
	return ""
}

// nothing stands for a place that is not observed: a nil is an observed value.
type nothing struct{}

func (p *proposer) node(here sighted, place schema.Path) any {
	switch document := here.document.(type) {
	case nil:
		if reason, left := p.reasons[place.String()]; left {
			p.leave(place, reason)
			return nothing{}
		}
		return nil
	case map[string]any:
		return p.object(here, document, place)
	case []any:
		return p.list(here, document[:len(document)-1], place)
	}
	return here.document // the identity
}

// object returns the fields that are observed. If all are left out for one reason, the object
// is left out.
func (p *proposer) object(here sighted, document map[string]any, place schema.Path) any {
	before := len(p.left)
	observed := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(document)) {
		if value := p.node(here.field(name), lens.Below(place, name, -1)); value != any(nothing{}) {
			observed[name] = value
		}
	}
	if len(observed) > 0 {
		return observed
	}
	p.summarise(before, place)
	return nothing{}
}

// summarise replaces what was left out below a place by the place, if the reason is the same.
func (p *proposer) summarise(before int, place schema.Path) {
	left := p.left[before:]
	if len(left) > 0 && !slices.ContainsFunc(left, func(l leftOut) bool { return l.reason != left[0].reason }) {
		p.left = append(p.left[:before], leftOut{place, left[0].reason})
	}
}

// list returns the elements that are observed, with the length that the list is to have.
func (p *proposer) list(here sighted, items []any, place schema.Path) any {
	before := len(p.left)
	observed, others := p.elements(here, items, place)
	if len(observed) == 0 && len(items) > 0 && p.fromLive {
		p.summarise(before, place)
		return nothing{}
	}
	least := len(observed)
	if !p.fromLive {
		least = len(items)
		live, _ := schema.ValueAt(p.live, p.livePath(place)).([]any)
		others = others || len(live) > len(items)
	}
	most := least
	if others {
		p.lists = append(p.lists, place.String())
		most = 0
	}
	return append(observed, map[string]any{schema.MinLengthKey: int64(least), schema.MaxLengthKey: int64(most)})
}

// elements returns the observed elements, and whether others have added some. An element
// that is not observed keeps its place if the manifest has it, or if elements are found
// by their index. Any other may come and go. A plain value cannot keep a place, so it
// ends the list.
func (p *proposer) elements(here sighted, items []any, place schema.Path) (observed []any, others bool) {
	last := 0
	for i := range items {
		value := p.node(here.element(items, i), lens.Below(place, "", i))
		if value != any(nothing{}) {
			observed = append(observed, value)
			last = len(observed)
			continue
		}
		others = p.fromLive
		if items[i] == nil {
			break
		}
		if !p.fromLive || !here.isKeyed() {
			observed = append(observed, map[string]any{})
		}
	}
	if p.fromLive {
		observed = observed[:last]
	}
	return observed, others
}

// livePath returns the path of a place in the live object.
func (p *proposer) livePath(place schema.Path) schema.Path {
	for i := len(place); i > 0; i-- {
		if path, ok := p.paths[place[:i].String()]; ok {
			return append(path[:i:i], place[i:]...)
		}
	}
	return place
}
