package schema

import (
	"fmt"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// Set is a mangled observer schema: one valid schema for each resource of a
// manifest, the user's first, in their order, then the default ones.
type Set []Schema

// Mangle checks a manifest and the user's observer schemas and adds the default
// schema of each resource that has none (specification 1.2, step 1). Every
// mistake is found, not only the first. With errors among the findings the set
// is nil. Paths begin with spec.manifest and spec.observer_schema.
func Mangle(resources, custom []any) (Set, Findings) {
	var m mangler
	m.readManifest(resources)
	m.readSchemas(custom)
	set := m.defaults()
	if len(m.findings.Errors()) > 0 {
		return nil, m.findings
	}
	return set, m.findings
}

type mangler struct {
	parser

	resources []map[string]any
	ids       []manifest.ID
	custom    Set
	// observed tells of each resource that the user gave a schema for it.
	observed []bool
}

func (m *mangler) readManifest(resources []any) {
	for i, raw := range resources {
		path := fmt.Sprintf("spec.manifest[%d]", i)
		resource, ok := raw.(map[string]any)
		if !ok {
			m.findings.add("not-an-object", path, "A resource must be an object")
			continue
		}
		id, err := manifest.Identify(resource)
		if err != nil {
			m.manifestFields(resource, i, path)
			continue
		}
		for _, former := range m.ids {
			if former == id {
				m.findings.add("duplicate-resource", path, "The resource is defined twice: %s", id)
			}
		}
		m.resources = append(m.resources, resource)
		m.ids = append(m.ids, id)
	}
	m.observed = make([]bool, len(m.ids))
}

// manifestFields reports what a resource lacks.
func (m *mangler) manifestFields(resource map[string]any, index int, path string) {
	require := func(value any, name string) {
		if text, _ := value.(string); text == "" {
			m.findings.add("manifest-field-missing", path+"."+name, "Field '%s' not found in resource at index %d", name, index)
		}
	}
	require(resource["apiVersion"], "apiVersion")
	require(resource["kind"], "kind")
	metadata, ok := resource["metadata"].(map[string]any)
	if !ok {
		m.findings.add("manifest-field-missing", path+".metadata", "Field 'metadata' not found in resource at index %d", index)
		return
	}
	require(metadata["name"], "metadata.name")
}

func (m *mangler) readSchemas(custom []any) {
	documents := make([]map[string]any, len(custom))
	ids := make([]manifest.ID, len(custom))
	known := make([]bool, len(custom))
	for i, raw := range custom {
		document, ok := raw.(map[string]any)
		if !ok {
			m.findings.add("not-an-object", schemaPath(i), "An observer schema must be an object")
			continue
		}
		documents[i] = document
		ids[i], known[i] = m.parseIdentity(document, schemaPath(i))
	}
	partners := manifest.Pair(ids, m.ids)
	for i, document := range documents {
		if known[i] && partners[i] < 0 {
			m.reportStray(ids[i], schemaPath(i))
		}
		m.readSchema(i, document, ids[i], partners[i])
	}
}

// reportStray reports a schema that no resource is left for.
func (m *mangler) reportStray(id manifest.ID, path string) {
	if manifest.Find(m.ids, id) >= 0 {
		m.findings.add("duplicate-schema", path, "There is already an observer schema for this resource: %s", id)
	} else {
		m.findings.add("not-in-manifest", path, "Observed resource must be in manifest: %s", id)
	}
}

func (m *mangler) readSchema(i int, document map[string]any, id manifest.ID, partner int) {
	var resource map[string]any
	if partner >= 0 {
		resource = m.resources[partner]
		m.observed[partner] = true
	}
	m.custom = append(m.custom, m.parse(id, document, resource, schemaPath(i)))
}

func (m *mangler) defaults() Set {
	set := m.custom
	for i, resource := range m.resources {
		if m.observed[i] {
			continue
		}
		if schema, err := Default(resource); err == nil { // it was identified above
			set = append(set, schema)
		}
	}
	return set
}

func schemaPath(i int) string { return fmt.Sprintf("spec.observer_schema[%d]", i) }
