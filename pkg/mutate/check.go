package mutate

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// checkConfigMap refuses what no Application can be.
func checkConfigMap(cm *corev1.ConfigMap) field.ErrorList {
	var refusals field.ErrorList
	annotations := field.NewPath("metadata", "annotations")
	if cm.Name == "" {
		refusals = append(refusals, field.Forbidden(field.NewPath("metadata", "generateName"),
			"an Application owns its objects by its name: set metadata.name"))
	}
	if cm.Immutable != nil && *cm.Immutable {
		refusals = append(refusals, field.Forbidden(field.NewPath("immutable"),
			"the status of an Application is kept in the ConfigMap: leave immutable out"))
	}
	if format := cm.Annotations[application.FormatAnnotation]; format != application.Format {
		refusals = append(refusals, field.NotSupported(annotations.Key(application.FormatAnnotation),
			format, []string{application.Format}))
	}
	for _, problem := range validation.IsDNS1123Label(application.ClusterOf(cm)) {
		refusals = append(refusals, field.Invalid(annotations.Key(application.ClusterAnnotation),
			cm.Annotations[application.ClusterAnnotation], problem))
	}
	if _, ok := cm.Data[application.ManifestKey]; !ok {
		refusals = append(refusals, field.Required(field.NewPath("data", application.ManifestKey),
			"the manifest of the Application, as YAML or JSON"))
	}
	return refusals
}

// checkSize refuses a spec that would leave no room for the status.
func checkSize(spec application.Spec) field.ErrorList {
	size := len(spec.Manifest) + len(spec.ObserverSchema)
	if size <= MaxSpecBytes {
		return nil
	}
	return field.ErrorList{invalid("data", fmt.Sprintf(
		"%s and %s have %d bytes together, and at most %d are possible: split the Application",
		application.ManifestKey, application.ObserverSchemaKey, size, MaxSpecBytes))}
}

// checkResources refuses resources that an Application cannot own.
func checkResources(resources []map[string]any) field.ErrorList {
	var refusals field.ErrorList
	if len(resources) > MaxResources {
		refusals = append(refusals, invalid("data."+application.ManifestKey,
			fmt.Sprintf("the manifest has %d resources, and at most %d are possible: split the Application", len(resources), MaxResources)))
	}
	for i, resource := range resources {
		path := resourcePath(i)
		if kind, _ := resource["kind"].(string); kind == "List" {
			refusals = append(refusals, invalid(path+".kind", `a List is not supported: write its items as documents, separated by "---"`))
		}
		metadata, _ := resource["metadata"].(map[string]any)
		for _, part := range []string{"annotations", "labels"} {
			refusals = append(refusals, checkReserved(metadata[part], path+".metadata."+part)...)
		}
	}
	return refusals
}

// checkNamesakes refuses two resources that are one object as soon as the one
// without a namespace gets that of the Application: it would never be as both say.
func checkNamesakes(resources []map[string]any, namespace string) field.ErrorList {
	var refusals field.ErrorList
	seen := map[manifest.ID]manifest.ID{}
	for i, resource := range resources {
		id, err := manifest.Identify(resource)
		if err != nil || id.Namespace != "" && id.Namespace != namespace {
			continue
		}
		object := id
		object.Namespace = namespace
		if former, ok := seen[object]; ok && former != id {
			refusals = append(refusals, invalid(resourcePath(i)+".metadata.namespace",
				fmt.Sprintf("The resource is defined twice, with and without its namespace: %s", object)))
		}
		seen[object] = id
	}
	return refusals
}

// checkReserved refuses keys of our domain: the marks of ownership, and with
// them an Application within an Application.
func checkReserved(values any, path string) field.ErrorList {
	fields, _ := values.(map[string]any)
	var refusals field.ErrorList
	for key := range fields {
		if application.IsReserved(key) {
			refusals = append(refusals, &field.Error{
				Type: field.ErrorTypeForbidden, Field: fmt.Sprintf("%s[%s]", path, key),
				Detail: fmt.Sprintf("keys of %s are set by the agent: leave it out", application.Domain),
			})
		}
	}
	slices.SortFunc(refusals, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return refusals
}
