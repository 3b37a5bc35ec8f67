package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json" // reads integers as such

	"github.com/krake-observer/krake-observer/pkg/apitypes"
	"github.com/krake-observer/krake-observer/pkg/blame"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// proposal is an observer schema that leaves out what others write, and what only the
// server sets, with the reasons.
type proposal struct {
	id       manifest.ID
	document map[string]any
	// author is the manager whose fields are observed; empty if nobody is known.
	author string
	// unsaid: the author has said nowhere what he has written, so that defaults of the API
	// server are taken for his, unless they are known. A note tells if they are not.
	unsaid bool
	note   string
	// left are the fields that are left out, lists those whose length is left open.
	left  []leftOut
	lists []schema.Path
}

type leftOut struct {
	path   schema.Path
	reason string
}

// propose gives an observer schema of a resource of a manifest, by what others write to
// the live object, which is nil if there is none. Without a resource, that is what the
// author of the live object has written, who has set more of it than others, without the
// defaults.
func propose(resource, live map[string]any, defaults []schema.Path) (proposal, error) {
	base := resource
	if resource == nil {
		base = live
	}
	observed, err := schema.Default(base)
	if err != nil {
		return proposal{}, fmt.Errorf("propose an observer schema: %w", err)
	}
	kind := apitypes.BuiltIn().Of(observed.ID())
	observed, ofServer := observed.WithoutServerOwned()
	observed = observed.Align(kind)
	p := proposer{live: live, fromLive: resource == nil, defaults: defaults, reasons: map[string]string{}, paths: map[string]schema.Path{}}
	p.id = observed.ID()
	p.weigh(observed.Values(base, live), writersOf(live))
	if p.fromLive && p.author == "" {
		return proposal{}, fmt.Errorf("%s has no managedFields of anybody who has set more than its status: propose from a manifest, by -f", p.id)
	}
	for _, path := range ofServer {
		p.leave(pathOf(strings.Split(path, ".")...), onlyServer)
	}
	p.document, _ = p.node(sighted{observed.Document(), kind, base}, schema.Path{}).(map[string]any)
	return p.proposal, nil
}

// lastApplied gives what kubectl apply has applied, without the namespace, nil if it has
// not: the author of the rest, which defaults have filled in, would be kubectl as well.
func lastApplied(live map[string]any) map[string]any {
	metadata, _ := live["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	text, _ := annotations[corev1.LastAppliedConfigAnnotation].(string)
	var resource map[string]any
	if json.Unmarshal([]byte(text), &resource) != nil {
		return nil
	}
	if applied, ok := resource["metadata"].(map[string]any); ok {
		delete(applied, "namespace")
	}
	return resource
}

// The reasons for which a field is left out, beside its managers.
const (
	onlyServer   = "only the server sets it"
	notSettable  = "of the metadata, an Application sets labels and annotations only"
	ofAgent      = "the agent sets it"
	ofStatus     = "values of a Secret do not belong into the status, which whoever may read ConfigMaps can see"
	ofScheduler  = "the scheduler sets it"
	ofKubectl    = "kubectl keeps there what it has applied"
	ofDefaults   = "the API server fills it in if nobody says it"
	notNecessary = "the namespace is that of the Application"
)

// proposer makes a proposal of what is observed by default.
type proposer struct {
	proposal

	live     map[string]any
	fromLive bool
	defaults []schema.Path
	// reasons are those for which values are left out, by their places.
	reasons map[string]string
	// paths are those of places in the live object.
	paths map[string]schema.Path
}

func (p *proposer) leave(path schema.Path, reason string) {
	p.left = append(p.left, leftOut{path, reason})
}

// weigh finds the author, and the reasons for which values are left out.
func (p *proposer) weigh(values []schema.Value, managers []writer) {
	counts := make([]int, len(managers))
	authors := make([][]bool, len(values))
	for i, value := range values {
		for j := range value.Path {
			p.paths[value.Place[:j+1].String()] = value.Path[:j+1]
		}
		authors[i] = make([]bool, len(managers))
		for j, manager := range managers {
			if value.Path != nil && manager.owns(value.Path) {
				authors[i][j] = true
				counts[j]++
			}
		}
	}
	author := -1
	for j, manager := range managers {
		if !manager.subresource && counts[j] > 0 && (author < 0 || counts[j] > counts[author]) {
			author, p.author = j, manager.name
			p.unsaid = p.fromLive && manager.operation != string(metav1.ManagedFieldsOperationApply)
		}
	}
	for i, value := range values {
		if reason := p.reason(value, managers, authors[i], author); reason != "" {
			p.reasons[value.Place.String()] = reason
		}
	}
}

// reason gives that for which a value is left out, empty if it is observed.
func (p *proposer) reason(value schema.Value, managers []writer, writes []bool, author int) string {
	if reason := p.unfit(value.Place); reason != "" {
		return reason
	}
	var others []string
	for j, manager := range managers {
		switch {
		case !writes[j]:
		case j == author || manager.name == p.author:
			return p.byDefault(value.Place)
		case !slices.Contains(others, manager.name):
			others = append(others, manager.name)
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

// byDefault gives the reason if a place is in one of the defaults.
func (p *proposer) byDefault(place schema.Path) string {
	if slices.ContainsFunc(p.defaults, func(path schema.Path) bool { return len(place) >= len(path) && slices.Equal(place[:len(path)], path) }) {
		return ofDefaults
	}
	return ""
}

// unfit tells why no observer schema of an Application may have a field.
func (p *proposer) unfit(path schema.Path) string {
	if path[0].Field == "metadata" {
		return p.unfitMetadata(path)
	}
	if p.id.APIVersion != "v1" {
		return ""
	}
	switch name := path.String(); {
	case p.id.Kind == "Secret" && (path[0].Field == "data" || path[0].Field == "stringData"):
		return ofStatus
	case p.id.Kind == "Pod" && name == "spec.nodeName":
		return ofScheduler
	}
	return ""
}

func (p *proposer) unfitMetadata(path schema.Path) string {
	below := ""
	if len(path) > 1 {
		below = path[1].Field
	}
	last := path[len(path)-1].Field
	switch below {
	case "namespace":
		if p.fromLive {
			return notNecessary
		}
		return ""
	case "labels", "annotations":
		if manifest.IsReserved(last) {
			return ofAgent
		}
		if last == corev1.LastAppliedConfigAnnotation {
			return ofKubectl
		}
		return ""
	}
	return notSettable
}

// sighted is one place: what is observed there by default, its type, and what there is.
type sighted struct {
	document any
	kind     schema.Type
	base     any
}

func (s sighted) field(name string) sighted {
	fields, _ := s.document.(map[string]any)
	values, _ := s.base.(map[string]any)
	inner := sighted{fields[name], nil, values[name]}
	if s.kind != nil {
		inner.kind = s.kind.Field(name)
	}
	return inner
}

func (s sighted) element(items []any, i int) sighted {
	values, _ := s.base.([]any)
	inner := sighted{items[i], nil, elementAt(values, i)}
	if s.kind != nil {
		inner.kind = s.kind.Element()
	}
	return inner
}

// nothing stands for a place that is not observed: a nil is an observed value.
type nothing struct{}

// node gives what is observed at a place.
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

// object gives the fields that are observed. If there are none, for one reason, it is
// the object that is left out.
func (p *proposer) object(here sighted, document map[string]any, place schema.Path) any {
	before := len(p.left)
	kept := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(document)) {
		if value := p.node(here.field(name), below(place, name, -1)); value != any(nothing{}) {
			kept[name] = value
		}
	}
	if len(kept) > 0 {
		return kept
	}
	p.summarise(before, place)
	return nothing{}
}

// summarise makes one of what was left out below a place, if the reason is the same.
func (p *proposer) summarise(before int, place schema.Path) {
	left := p.left[before:]
	if len(left) > 0 && !slices.ContainsFunc(left, func(l leftOut) bool { return l.reason != left[0].reason }) {
		p.left = append(p.left[:before], leftOut{place, left[0].reason})
	}
}

// list gives the elements that are observed, with the length that the list is to have.
func (p *proposer) list(here sighted, items []any, place schema.Path) any {
	before := len(p.left)
	kept, others := p.elements(here, items, place)
	if len(kept) == 0 && len(items) > 0 && p.fromLive {
		p.summarise(before, place)
		return nothing{}
	}
	length := len(kept)
	if !p.fromLive {
		length = len(items)
	}
	open := others || p.hasMore(place, len(items))
	if open {
		p.lists = append(p.lists, place)
	}
	return append(kept, control(length, open))
}

// elements gives those that are observed, and tells if others have added some. One
// that is not observed keeps its place where the manifest has it, or the index tells
// which is which; else it may come and go. A plain value cannot hold a place: it ends
// the list.
func (p *proposer) elements(here sighted, items []any, place schema.Path) (kept []any, others bool) {
	last := 0
	byKey := here.kind != nil && len(here.kind.Keys()) > 0
	for i := range items {
		value := p.node(here.element(items, i), below(place, "", i))
		if value != any(nothing{}) {
			kept = append(kept, value)
			last = len(kept)
			continue
		}
		others = p.fromLive
		if items[i] == nil {
			break
		}
		if !p.fromLive || !byKey {
			kept = append(kept, map[string]any{})
		}
	}
	if p.fromLive {
		kept = kept[:last]
	}
	return kept, others
}

// hasMore tells if the live list has elements beyond those of the manifest.
func (p *proposer) hasMore(place schema.Path, length int) bool {
	items, _ := along(p.live, p.livePath(place)).([]any)
	return !p.fromLive && len(items) > length
}

// livePath leads to a place in the live object.
func (p *proposer) livePath(place schema.Path) schema.Path {
	for i := len(place); i > 0; i-- {
		if path, ok := p.paths[place[:i].String()]; ok {
			return append(path[:i:i], place[i:]...)
		}
	}
	return place
}

// control is the control dictionary of a list with so many elements, or more if it is
// open.
func control(length int, open bool) map[string]any {
	most := length
	if open {
		most = 0
	}
	return map[string]any{schema.MinLengthKey: int64(length), schema.MaxLengthKey: int64(most)}
}

func below(place schema.Path, field string, index int) schema.Path {
	return append(slices.Clip(place), schema.Step{Field: field, Index: index})
}

func pathOf(fields ...string) schema.Path {
	path := make(schema.Path, 0, len(fields))
	for _, name := range fields {
		path = append(path, schema.Step{Field: name, Index: -1})
	}
	return path
}

// text gives the schema as YAML, with the reasons as comments before it.
func (p proposal) text() (string, error) {
	document, err := textOf(p.document)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Observer schema of %s", oneLine(p.id.String()))
	if p.author != "" {
		fmt.Fprintf(&b, ": of what %s has set", oneLine(p.author))
	}
	b.WriteString(".\n")
	for _, reason := range p.reasonsLeft() {
		var paths []schema.Path
		for _, left := range p.left {
			if left.reason == reason {
				paths = append(paths, left.path)
			}
		}
		fmt.Fprintln(&b, "# not observed, as", oneLine(reason+": "+texts(paths)))
	}
	if p.note != "" {
		fmt.Fprintln(&b, "#", oneLine(p.note))
	}
	if len(p.lists) > 0 {
		fmt.Fprintln(&b, "# of any length, as others add elements:", oneLine(texts(p.lists)))
	}
	return b.String() + document, nil
}

func texts(paths []schema.Path) string {
	names := make([]string, 0, len(paths))
	for _, path := range paths {
		names = append(names, path.String())
	}
	return strings.Join(names, ", ")
}

// reasonsLeft are the reasons for which anything is left out.
func (p proposal) reasonsLeft() []string {
	var reasons []string
	for _, left := range p.left {
		if !slices.Contains(reasons, left.reason) {
			reasons = append(reasons, left.reason)
		}
	}
	return reasons
}

// writer is who has written fields of an object.
type writer struct {
	name        string
	subresource bool
	operation   string
	// object is the object, as if nobody else had written it.
	object map[string]any
}

func (m writer) owns(path schema.Path) bool {
	return blame.Of(m.object, []schema.Path{path}, "").Known()
}

func writersOf(live map[string]any) []writer {
	metadata, _ := live["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	managers := make([]writer, 0, len(entries))
	for _, raw := range entries {
		entry, _ := raw.(map[string]any)
		name, _ := entry["manager"].(string)
		subresource, _ := entry["subresource"].(string)
		operation, _ := entry["operation"].(string)
		alone, object := maps.Clone(metadata), maps.Clone(live)
		alone["managedFields"] = []any{raw}
		object["metadata"] = alone
		managers = append(managers, writer{
			name:        blame.Culprit{Manager: name, Subresource: subresource}.Name(),
			subresource: subresource != "", operation: operation, object: object,
		})
	}
	return managers
}
