package plan

import (
	"maps"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// observeMarks returns the schema with the marks observed as well.
func observeMarks(observed schema.Schema, marks manifest.Marks) schema.Schema {
	for label := range marks.Labels {
		observed = observed.Observe("metadata", "labels", label)
	}
	for annotation := range marks.Annotations {
		observed = observed.Observe("metadata", "annotations", annotation)
	}
	return observed
}

// WithoutMarks returns an object, or its projection, without our labels and annotations. Documents
// must not contain them, even if labels or annotations are observed as a whole.
func WithoutMarks(object map[string]any) map[string]any {
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return object
	}
	metadata = maps.Clone(metadata)
	for _, name := range []string{"labels", "annotations"} {
		values, ok := metadata[name].(map[string]any)
		if !ok {
			continue
		}
		if values = unreserved(values); len(values) > 0 {
			metadata[name] = values
		} else {
			delete(metadata, name)
		}
	}
	object = maps.Clone(object)
	object["metadata"] = metadata
	return object
}

func unreserved(values map[string]any) map[string]any {
	own := maps.Clone(values)
	maps.DeleteFunc(own, func(key string, _ any) bool { return manifest.IsReserved(key) })
	return own
}

// SplitMarks separates the differences of our marks from the others.
func SplitMarks(differences schema.Differences) (marks, fields schema.Differences) {
	for _, difference := range differences {
		if isMark(difference) {
			marks = append(marks, difference)
		} else {
			fields = append(fields, difference)
		}
	}
	return marks, fields
}

// isMark reports whether a difference is about one of our marks. If an object has no labels or
// annotations at all, one difference covers all desired ones.
func isMark(d schema.Difference) bool {
	if len(d.Path) < 2 || d.Path[0].Field != "metadata" {
		return false
	}
	if wanted, ok := d.Want.(map[string]any); ok && len(d.Path) == 2 && len(wanted) > 0 {
		return len(unreserved(wanted)) == 0
	}
	return len(d.Path) == 3 && manifest.IsReserved(d.Path[2].Field)
}
