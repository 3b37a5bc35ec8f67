package application

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// MaxDrifts bounds the history.
const MaxDrifts = 10

// Drift is one drift of one object, with its repair.
type Drift struct {
	Object manifest.ID    `json:"object"`
	Fields []DriftedField `json:"fields,omitempty"`
	// Manager, Subresource, Operation and Changed are from managedFields: a hint, empty without one.
	Manager     string       `json:"manager,omitempty"`
	Subresource string       `json:"subresource,omitempty"`
	Operation   string       `json:"operation,omitempty"`
	Changed     *metav1.Time `json:"changed,omitempty"`
	Seen        metav1.Time  `json:"seen"`
	// Repaired is the action that repaired it, empty before a repair.
	Repaired string `json:"repaired,omitempty"`
	// After is the time from Seen to the repair.
	After *metav1.Duration `json:"after,omitempty"`
	// Count is the number of changes of the same fields by the same manager.
	Count int `json:"count,omitempty"`
}

// DriftedField is a field that drifted. It has short values that are not private, and digests of longer ones.
type DriftedField struct {
	Path string `json:"path"`
	Want any    `json:"want,omitempty"`
	Have any    `json:"have,omitempty"`
	// Removed reports that the field is not observed, and was removed because it cannot stand beside a desired value.
	Removed bool `json:"removed,omitempty"`
}

// since returns the drift as seen at an earlier time, which makes its repair take longer.
func (d Drift) since(seen metav1.Time) Drift {
	if !seen.Before(&d.Seen) {
		return d
	}
	after := d.Seen.Sub(seen.Time)
	if d.After != nil {
		after += d.After.Duration
	}
	d.Seen, d.After = seen, &metav1.Duration{Duration: after}
	return d
}

// hasFieldsOf reports whether this drift has all fields of another one.
func (d Drift) hasFieldsOf(other Drift) bool {
	return len(other.Fields) > 0 && !slices.ContainsFunc(other.Fields, func(field DriftedField) bool {
		return !slices.ContainsFunc(d.Fields, func(own DriftedField) bool { return own.Path == field.Path })
	})
}

// SameAs reports whether two drifts are of the same fields, by the same manager.
func (d Drift) SameAs(other Drift) bool {
	return d.Object == other.Object && d.Manager == other.Manager && d.Subresource == other.Subresource &&
		slices.EqualFunc(d.Fields, other.Fields, func(a, b DriftedField) bool { return a.Path == b.Path })
}
