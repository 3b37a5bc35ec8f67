package manifest

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Domain is the domain of this project's labels and annotations. No manifest may set one in it or below it.
const Domain = "krake.dev"

// IsReserved reports whether a label or annotation is in [Domain] or below it.
func IsReserved(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return domain == Domain || strings.HasSuffix(domain, "."+Domain)
}

// Marks are the labels and annotations by which an owner recognizes its objects.
type Marks struct {
	Labels      map[string]string
	Annotations map[string]string
}

// On returns a copy of the resource with the marks beside its own labels and annotations.
func (m Marks) On(resource map[string]any) map[string]any {
	marked := maps.Clone(resource)
	metadata := copyOf(resource["metadata"])
	for name, marks := range map[string]map[string]string{"labels": m.Labels, "annotations": m.Annotations} {
		own := copyOf(metadata[name])
		for key, value := range marks {
			own[key] = value
		}
		metadata[name] = own
	}
	marked["metadata"] = metadata
	return marked
}

// Prove reports whether the live object has every annotation of the marks. Labels prove nothing: the
// server copies them to objects that it derives.
func (m Marks) Prove(live map[string]any) bool {
	return m.ProveBy((&unstructured.Unstructured{Object: live}).GetAnnotations())
}

// ProveBy is [Marks.Prove] by the annotations of a live object.
func (m Marks) ProveBy(annotations map[string]string) bool {
	for key, value := range m.Annotations {
		if own, ok := annotations[key]; !ok || own != value {
			return false
		}
	}
	return len(m.Annotations) > 0
}

// copyOf returns a copy of an object, empty if there is none.
func copyOf(object any) map[string]any {
	fields := map[string]any{}
	own, _ := object.(map[string]any)
	maps.Copy(fields, own)
	return fields
}
