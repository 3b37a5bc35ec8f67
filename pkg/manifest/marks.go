package manifest

import (
	"maps"
	"strings"
)

// Domain is the domain of this project's labels and annotations. No manifest may
// set one in it or below it.
const Domain = "krake.dev"

// IsReserved reports whether a label or annotation is in [Domain] or below it.
func IsReserved(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return domain == Domain || strings.HasSuffix(domain, "."+Domain)
}

// Marks are the labels and annotations by which an owner knows its objects.
type Marks struct {
	Labels      map[string]string
	Annotations map[string]string
}

// On gives a copy of the resource that carries the marks beside its own labels
// and annotations.
func (m Marks) On(resource map[string]any) map[string]any {
	marked := maps.Clone(resource)
	metadata, _ := resource["metadata"].(map[string]any)
	metadata = copied(metadata)
	for name, marks := range map[string]map[string]string{"labels": m.Labels, "annotations": m.Annotations} {
		own, _ := metadata[name].(map[string]any)
		own = copied(own)
		for key, value := range marks {
			own[key] = value
		}
		metadata[name] = own
	}
	marked["metadata"] = metadata
	return marked
}

// Prove tells if the live object carries every annotation of the marks. Labels
// prove nothing: the server copies them to objects that it derives.
func (m Marks) Prove(live map[string]any) bool {
	metadata, _ := live["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	return areAmong(m.Annotations, annotations)
}

// ProveBy is [Marks.Prove] by the annotations of a live object.
func (m Marks) ProveBy(annotations map[string]string) bool {
	return areAmong(m.Annotations, annotations)
}

func areAmong[V any](marks map[string]string, annotations map[string]V) bool {
	for key, value := range marks {
		if any(annotations[key]) != any(value) {
			return false
		}
	}
	return len(marks) > 0
}

func copied(fields map[string]any) map[string]any {
	if fields == nil {
		return map[string]any{}
	}
	return maps.Clone(fields)
}
