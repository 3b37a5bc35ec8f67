package schema

import (
	"fmt"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// Mangle checks a manifest and the user's observer schemas, and adds a default schema for each
// resource without one (Krake documentation, Application controller,
// step 1). It reports every mistake, not only the first.
// If there are errors among the findings, the set is nil. Paths begin with spec.manifest and
// spec.observer_schema.
func Mangle(resources, custom []any) (Set, Findings) {
	return mangle(mangler{}, resources, custom)
}

// MangleTyped is [Mangle] for resources of an API. typeOf returns the type of a resource, nil if it is
// unknown. A field of a stated key may be absent if it has a default, and of an unknown type with a
// warning.
func MangleTyped(resources, custom []any, typeOf func(manifest.ID) Type) (Set, Findings) {
	return mangle(mangler{typeOf: typeOf}, resources, custom)
}

func mangle(m mangler, resources, custom []any) (Set, Findings) {
	m.readManifest(resources)
	m.readSchemas(custom)
	set := m.defaults()
	if m.errors > 0 {
		return nil, m.all()
	}
	return set, m.all()
}

type mangler struct {
	report

	// typeOf returns the type of a resource. It is nil if resources are of no API.
	typeOf    func(manifest.ID) Type
	resources []map[string]any
	ids       []manifest.ID
	custom    Set
	// known are the identities in the manifest; named are those without their
	// namespaces, as the identities of schemas are.
	known, named map[manifest.ID]bool
	// observed reports for each resource whether the user wrote a schema for it.
	observed []bool
}

func (m *mangler) readManifest(resources []any) {
	m.known, m.named = map[manifest.ID]bool{}, map[manifest.ID]bool{}
	for i, raw := range resources {
		m.enter(fmt.Sprintf("spec.manifest[%d]", i))
		m.readResource(raw, i)
		m.leave()
	}
	m.observed = make([]bool, len(m.ids))
}

func (m *mangler) readResource(raw any, index int) {
	resource, ok := raw.(map[string]any)
	if !ok {
		m.add("not-an-object", "A resource must be an object")
		return
	}
	if manifest.TooDeep(resource) {
		m.add("too-deep", "nested deeper than %d", manifest.MaxDepth)
		return
	}
	id, err := manifest.Identify(resource)
	if err != nil {
		m.manifestFields(resource, index)
		return
	}
	if m.known[id] {
		m.add("duplicate-resource", "The resource is defined twice: %s", id.String())
	}
	m.known[id] = true
	m.resources = append(m.resources, resource)
	m.ids = append(m.ids, id)
	id.Namespace = ""
	m.named[id] = true
}

// manifestFields reports missing fields of a resource.
func (m *mangler) manifestFields(resource map[string]any, index int) {
	require := func(value any, name string) {
		if text, _ := value.(string); text == "" {
			m.addAt("."+name, "manifest-field-missing", "Field '%s' not found in resource at index %d", name, index)
		}
	}
	require(resource["apiVersion"], "apiVersion")
	require(resource["kind"], "kind")
	metadata, ok := resource["metadata"].(map[string]any)
	if !ok {
		m.addAt(".metadata", "manifest-field-missing", "Field 'metadata' not found in resource at index %d", index)
		return
	}
	require(metadata["name"], "metadata.name")
}

func (m *mangler) readSchemas(custom []any) {
	documents := make([]map[string]any, len(custom))
	ids := make([]manifest.ID, len(custom))
	known := make([]bool, len(custom))
	for i, raw := range custom {
		m.enter(fmt.Sprintf("spec.observer_schema[%d]", i))
		if document, ok := raw.(map[string]any); ok {
			documents[i] = document
			ids[i], known[i] = parser{report: &m.report}.parseIdentity(document)
		} else {
			m.add("not-an-object", "An observer schema must be an object")
		}
		m.leave()
	}
	partners := manifest.PairNamesakes(ids, m.ids)
	for i, document := range documents {
		if document == nil {
			continue
		}
		m.enter(fmt.Sprintf("spec.observer_schema[%d]", i))
		if known[i] && partners[i] < 0 {
			m.reportStray(ids[i])
		}
		m.readSchema(document, ids[i], partners[i])
		m.leave()
	}
}

// reportStray reports a schema that has no remaining resource.
func (m *mangler) reportStray(id manifest.ID) {
	if m.named[id] {
		m.add("duplicate-schema", "There is already an observer schema for this resource: %s", id.String())
	} else {
		m.add("not-in-manifest", "Observed resource must be in manifest: %s", id.String())
	}
}

func (m *mangler) readSchema(document map[string]any, id manifest.ID, partner int) {
	p, resource := parser{report: &m.report}, described{}
	if m.typeOf != nil {
		resource.kind = m.typeOf(id)
		p.isUnknown = resource.kind == nil
	}
	if partner >= 0 {
		resource.value = m.resources[partner]
		m.observed[partner] = true
	}
	m.custom = append(m.custom, p.parse(id, document, resource))
}

func (m *mangler) defaults() Set {
	set := m.custom
	for i, resource := range m.resources {
		if m.observed[i] {
			continue
		}
		if schema, err := Default(resource); err == nil { // it has an identity
			set = append(set, schema)
		}
	}
	return set
}
