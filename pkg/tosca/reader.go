package tosca

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// reader reads a template with its imports, and collects their mistakes.
type reader struct {
	open func(name string) ([]byte, error)
	// alone: the template has no files beside it.
	alone bool
	// bare: the template is in an archive without metadata.
	bare bool

	// budget is how many bytes may still be read.
	budget int
	read   map[string]bool
	// unreadable: a file could not be read, and no further file is asked for.
	unreadable bool
	types      map[string]*place
	inputs     map[string]*place // their values
	nodes      map[string]*node
	ordered    []*node
	mistakes
}

// node is a node template.
type node struct {
	at         *place
	properties map[string]*place
}

func newReader(open func(name string) ([]byte, error)) *reader {
	return &reader{
		open:   open,
		budget: MaxBytes,
		read:   map[string]bool{},
		types:  map[string]*place{},
		inputs: map[string]*place{},
		nodes:  map[string]*node{},
	}
}

// readFile returns the mapping that a file contains.
func (r *reader) readFile(name string) (*place, error) {
	text, err := r.open(name)
	mistake := new(Error)
	switch {
	case errors.As(err, &mistake):
		return nil, err
	case errors.Is(err, fs.ErrNotExist):
		return nil, &Error{File: name, Message: "there is no such file", cause: err}
	case err != nil:
		return nil, &Error{File: name, Message: "read it: " + oneLine(err), cause: err}
	}
	if r.budget -= len(text); r.budget < 0 {
		return nil, &Error{File: name, Message: "the template and its imports have more than 262144 bytes: leave out what no node template needs"}
	}
	r.read[name] = true
	tree, err := manifest.DecodeTree(text)
	if err != nil {
		return nil, &Error{File: name, Message: undecoded(text, err)}
	}
	file := &place{Tree: tree, file: name, line: tree.Line}
	if !file.isMapping() {
		return nil, file.errorf("%s, and a mapping is wanted: a template begins with tosca_definitions_version", kindOf(tree.Value))
	}
	return file, nil
}

// undecoded returns why a text is not a single document.
func undecoded(text []byte, err error) string {
	if _, all := manifest.Decode(text); all == nil && len(text) <= MaxBytes {
		return "more than one YAML document: one is wanted, so take out the lines \"---\" but for the first"
	}
	return oneLine(err)
}

// wants reports whether a place is a mapping, and adds a mistake if it is not.
func (r *reader) wants(p *place, mapping string) bool {
	if !p.isMapping() {
		r.add(p.unexpected(mapping))
	}
	return p.isMapping()
}

// mapping returns a field that is a mapping, or nil if the field is absent or null.
func (r *reader) mapping(of *place, name string) *place {
	p := of.field(name)
	if p.isNull() || !r.wants(p, "a mapping") {
		return nil
	}
	return p
}

// filled returns a field that is a mapping, or nil. An absent or empty field is a mistake.
func (r *reader) filled(of *place, name, missing string) *place {
	if p := of.field(name); p.isNull() || p.isMapping() && len(p.Fields) == 0 {
		r.add(of.errorf("%s", missing))
		return nil
	}
	return r.mapping(of, name)
}

// checkKeys adds a mistake for each field that is not one of the known ones, which are
// separated as in the message.
func (r *reader) checkKeys(p *place, known, owner string) {
	names := strings.Split(known, ", ")
	for name, field := range p.fields() {
		if !slices.Contains(names, name) {
			r.add(field.errorf("unknown field: %s has %s", owner, known))
		}
	}
}
