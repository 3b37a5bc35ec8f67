package application

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// Clone returns a copy that the caller may change. It shares only what never changes: the published
// documents and the schema.
func (a *Application) Clone() *Application {
	clone := *a
	clone.OtherHolders = slices.Clone(a.OtherHolders)
	clone.Elsewhere = maps.Clone(a.Elsewhere)
	clone.Settings.Shutdown.GraceTime, clone.Settings.Shutdown.Retries = pointed(a.Settings.Shutdown.GraceTime), pointed(a.Settings.Shutdown.Retries)
	clone.Settings.ValuesFrom = slices.Clone(a.Settings.ValuesFrom)
	clone.Settings.After = slices.Clone(a.Settings.After)
	clone.Annotations = maps.Clone(a.Annotations)
	clone.Learned = each(a.Learned, runtime.DeepCopyJSON)
	clone.Status = a.Status.clone()
	clone.Inventory, clone.Adopted = slices.Clone(a.Inventory), slices.Clone(a.Adopted)
	clone.Hooks.Tokens, clone.Hooks.Shutdown = maps.Clone(a.Hooks.Tokens), pointed(a.Hooks.Shutdown)
	clone.Damaged = maps.Clone(a.Damaged)
	return &clone
}

func (s Status) clone() Status {
	s.Conditions = slices.Clone(s.Conditions)
	s.Objects = each(s.Objects, func(o ObjectStatus) ObjectStatus {
		o.Fields, o.Hold, o.Ended = slices.Clone(o.Fields), pointed(o.Hold), pointed(o.Ended)
		return o
	})
	s.Services = maps.Clone(s.Services)
	s.ContainerHealth = pointed(s.ContainerHealth)
	s.Drifts = each(s.Drifts, func(d Drift) Drift {
		d.Fields = each(d.Fields, func(f DriftedField) DriftedField {
			f.Want, f.Have = runtime.DeepCopyJSONValue(f.Want), runtime.DeepCopyJSONValue(f.Have)
			return f
		})
		d.Changed, d.After = pointed(d.Changed), pointed(d.After)
		return d
	})
	return s
}

// each returns the result for each value, nil for nil.
func each[V any](values []V, of func(V) V) []V {
	values = slices.Clone(values)
	for i := range values {
		values[i] = of(values[i])
	}
	return values
}

// pointed returns a pointer to a copy of the value, nil for nil.
func pointed[V any](value *V) *V {
	if value == nil {
		return nil
	}
	return new(*value)
}
