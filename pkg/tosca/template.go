package tosca

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// versions are those of the language that are supported.
func versions() []string { return []string{"tosca_simple_yaml_1_0", "tosca_simple_yaml_1_2"} }

// sections are what a template may have.
func sections() []string {
	return []string{
		"tosca_definitions_version", "tosca_default_namespace", "metadata", "template_name", "template_author", "template_version",
		"description", "dsl_definitions", "repositories", "imports", "artifact_types", "data_types", "capability_types",
		"interface_types", "relationship_types", "relationship_templates", "node_types", "group_types", "policy_types", "topology_template",
	}
}

// topologySections are what its topology may have.
func topologySections() []string {
	return []string{
		"description", "inputs", "node_templates", "relationship_templates", "outputs", "groups", "substitution_mappings", "policies",
	}
}

// readFile gives what is in a file, which must be a mapping.
func (t *translation) readFile(name string) (*place, error) {
	text, err := t.open(name)
	if err != nil {
		return nil, notRead(name, err)
	}
	if t.left -= len(text); t.left < 0 {
		return nil, &Error{File: name, Message: tooLong}
	}
	t.read[name] = true
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

const tooLong = "the template and its imports have more than 262144 bytes: leave out what no node template needs"

func notRead(name string, err error) error {
	mistake := new(Error)
	switch {
	case errors.As(err, &mistake):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return &Error{File: name, Message: "there is no such file", cause: err}
	}
	return &Error{File: name, Message: "read it: " + oneLine(err), cause: err}
}

// undecoded says why a text is not the one document that it should be.
func undecoded(text []byte, err error) string {
	if _, all := manifest.Decode(text); all == nil && len(text) <= manifest.MaxBytes {
		return "more than one YAML document: one is wanted, so take out the lines \"---\" but for the first"
	}
	return oneLine(err)
}

func (t *translation) checkTemplate(template *place) {
	version := template.field("tosca_definitions_version")
	switch {
	case version == nil:
		t.add(template.errorf("missing required field tosca_definitions_version: write %s", strings.Join(versions(), " or ")))
	case !slices.Contains(versions(), version.text()):
		t.add(version.errorf("the version is not supported: write %s", strings.Join(versions(), " or ")))
	case t.bare && version.text() == versions()[0]:
		t.add(version.errorf("an archive of %s needs the file %s, with a line %q: add it, or write %s",
			versions()[0], metadata, entryKey+": "+template.file, versions()[1]))
	}
	t.checkKeys(template, sections(), "a template")
}

// checkKeys tells of each field that is not one of the known.
func (t *translation) checkKeys(p *place, known []string, owner string) {
	for _, field := range p.Fields {
		if !slices.Contains(known, field.Name) {
			t.add(p.child(field).errorf("unknown field: %s has %s", owner, strings.Join(known, ", ")))
		}
	}
}

// mapping gives the field, which is a mapping if it is there, or nil.
func (t *translation) mapping(of *place, name string) *place {
	p := of.field(name)
	if p == nil || p.Value == nil {
		return nil
	}
	if !p.isMapping() {
		t.add(p.errorf("%s, and a mapping is wanted", kindOf(p.Value)))
		return nil
	}
	return p
}

func (t *translation) readTopology(template *place) {
	topology := template.field("topology_template")
	switch {
	case topology.isEmpty():
		t.add(template.errorf("TOSCA does not contain any topology template: write topology_template with node_templates"))
		return
	case !topology.isMapping():
		t.add(topology.errorf("%s, and a mapping is wanted", kindOf(topology.Value)))
		return
	}
	t.checkKeys(topology, topologySections(), "a topology template")
	t.readInputs(t.mapping(topology, "inputs"))
	t.readNodes(topology)
}
