package create

import (
	"fmt"
	"maps"
	"strings"

	"github.com/krake-observer/krake-observer/internal/blame"
	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// proposal is an observer schema that leaves out what others write, and what only the
// server sets, with the reasons.
type proposal struct {
	id       manifest.ID
	document map[string]any
	// author is the manager whose fields are observed; empty if it is unknown.
	author string
	// unsaid: no record has the fields that the author wrote. Defaults of the API server count as
	// the author's, unless they are known. The note says if they are not.
	unsaid bool
	note   string
	// left has the omitted fields, and lists the lists with an open length.
	left  []leftOut
	lists []string
}

type leftOut struct {
	path   schema.Path
	reason string
}

// text returns the schema as YAML, with the reasons as comments before it.
func (p proposal) text() (string, error) {
	document, err := env.YAML(p.document)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Observer schema of %s", env.OneLine(p.id.String()))
	if p.author != "" {
		fmt.Fprintf(&b, ": of what %s has set", env.OneLine(p.author))
	}
	b.WriteString(".\n")
	var reasons []string
	paths := map[string][]string{}
	for _, left := range p.left {
		if paths[left.reason] == nil {
			reasons = append(reasons, left.reason)
		}
		paths[left.reason] = append(paths[left.reason], left.path.String())
	}
	for _, reason := range reasons {
		fmt.Fprintln(&b, "# not observed, as", env.OneLine(reason+": "+strings.Join(paths[reason], ", ")))
	}
	if p.note != "" {
		fmt.Fprintln(&b, "#", env.OneLine(p.note))
	}
	if len(p.lists) > 0 {
		fmt.Fprintln(&b, "# of any length, as others add elements:", env.OneLine(strings.Join(p.lists, ", ")))
	}
	return b.String() + document, nil
}

// writer is a manager that has written fields of an object.
type writer struct {
	blame.Culprit

	// object is the object with the fields of this manager alone.
	object map[string]any
}

func (w writer) owns(path schema.Path) bool {
	return blame.Of(w.object, []schema.Path{path}, "").Known()
}

func writersOf(live map[string]any) []writer {
	metadata, _ := live["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	writers := make([]writer, 0, len(entries))
	for _, entry := range entries {
		fields, _ := entry.(map[string]any)
		alone, w := maps.Clone(metadata), writer{object: maps.Clone(live)}
		alone["managedFields"], w.object["metadata"] = []any{entry}, alone
		w.Manager, _ = fields["manager"].(string)
		w.Subresource, _ = fields["subresource"].(string)
		w.Operation, _ = fields["operation"].(string)
		writers = append(writers, w)
	}
	return writers
}

// sighted is one place: what is observed there by default, its type, and the value.
type sighted struct {
	document any
	kind     schema.Type
	base     any
}

func (s sighted) field(name string) sighted {
	fields, _ := s.document.(map[string]any)
	values, _ := s.base.(map[string]any)
	return sighted{document: fields[name], base: values[name], kind: fieldType(s.kind, name)}
}

func (s sighted) element(items []any, i int) sighted {
	values, _ := s.base.([]any)
	inner := sighted{document: items[i], base: lens.ElementAt(values, i)}
	if s.kind != nil {
		inner.kind = s.kind.Element()
	}
	return inner
}

// isKeyed reports whether the elements of a list are found by their keys.
func (s sighted) isKeyed() bool { return s.kind != nil && len(s.kind.Keys()) > 0 }
