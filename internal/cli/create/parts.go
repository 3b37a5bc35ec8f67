package create

import (
	"fmt"
	"slices"
	"strings"

	"github.com/krake-observer/krake-observer/internal/cli/draft"
	"github.com/krake-observer/krake-observer/internal/compose"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// parts adds the observer schemas of a preset to the objects, and reads the file if --observe
// names one.
func (c *creation) parts(objects []compose.Object) ([]compose.Part, error) {
	parts := make([]compose.Part, len(objects))
	for i, object := range objects {
		parts[i].Object = object
	}
	switch c.observe {
	case observeDeclared:
		return parts, nil
	case observeMinimal:
		schemas, err := compose.Minimal(objects)
		for i, text := range schemas {
			parts[i].Schema = text
		}
		return parts, err
	}
	observerSchema, err := draft.ReadFile(c.In, c.observe)
	if err != nil {
		return nil, fmt.Errorf("--observe is %s, %s, or a file with observer schemas: %w", observeDeclared, observeMinimal, err)
	}
	c.observerSchema = &observerSchema
	return parts, nil
}

// composed is an Application that is to be created.
type composed struct {
	draft.Draft

	parts []compose.Part
}

// compose makes the Applications of the objects.
func (c *creation) compose(parts []compose.Part) ([]composed, error) {
	groups := compose.Split(parts, compose.Limits{Objects: manifest.MaxResources, Manifest: manifest.MaxBytes, Schemas: application.MaxPlainBytes})
	if len(groups) > 1 && c.observerSchema != nil {
		return nil, fmt.Errorf("the objects need %d Applications, and the observer schemas of %s are for one: create the Applications one by one", len(groups), c.observe)
	}
	apps := make([]composed, 0, len(groups))
	for i, group := range groups {
		name := c.name
		if len(groups) > 1 {
			name = fmt.Sprintf("%s-%d", c.name, i+1)
		}
		app := c.application(name, group)
		if err := application.CompressManifest(app.ConfigMap); err != nil {
			return nil, err
		}
		apps = append(apps, app)
	}
	return apps, nil
}

func (c *creation) application(name string, parts []compose.Part) composed {
	manifests, schemas := compose.Spec(parts)
	d := draft.New(name, draft.File{Name: c.source(), Text: []byte(manifests)})
	d.ConfigMap.Namespace = c.namespace
	objects := make([]compose.Object, 0, len(parts))
	for _, part := range parts {
		objects = append(objects, part.Object)
	}
	d.Places.Parts[application.ManifestKey] = draft.Part{File: c.source(), Objects: objects}
	switch {
	case c.observerSchema != nil:
		d.Set(application.ObserverSchemaKey, *c.observerSchema)
	case schemas != "":
		d.ConfigMap.Data[application.ObserverSchemaKey] = schemas
	}
	adopt := ""
	if c.imported != nil {
		adopt = "true"
	}
	for annotation, value := range map[string]string{
		application.ClusterAnnotation: c.cluster, application.ModeAnnotation: c.mode, application.AdoptAnnotation: adopt,
		application.ValuesFromAnnotation: c.valuesFor(objects),
	} {
		if value != "" {
			d.ConfigMap.Annotations[annotation] = value
		}
	}
	return composed{d, parts}
}

// valuesFor returns the annotation that fills the Secrets among the objects, "" if there are none.
func (c *creation) valuesFor(objects []compose.Object) string {
	var entries []string
	for i, value := range c.values {
		if slices.ContainsFunc(objects, func(object compose.Object) bool { return value.Fills(object.ID) }) {
			entries = append(entries, c.valuesFrom[i])
		}
	}
	return strings.Join(entries, ",")
}
