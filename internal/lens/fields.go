package lens

import (
	"cmp"
	"slices"
	"time"

	"github.com/krake-observer/krake-observer/internal/blame"
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Object has the observed fields of a live object.
type Object struct {
	manifest.ID `json:",inline"`

	Missing bool     `json:"missing,omitempty"`
	Fields  []Field  `json:"fields,omitempty"`
	Lengths []Length `json:"lengths,omitempty"`
}

// Field is an observed field with its last manager. Private values are hidden.
type Field struct {
	Path string `json:"path"`
	// Value and Desired are omitted if there is none.
	Value   any `json:"value,omitempty"`
	Desired any `json:"desired,omitempty"`
	// Drift: the value is not the desired one. Pinned: the desired value was learned
	// from the cluster. Unknown: none is desired yet, and this one will be learned.
	Drift       bool       `json:"drift,omitempty"`
	Pinned      bool       `json:"pinned,omitempty"`
	Unknown     bool       `json:"unknown,omitempty"`
	Manager     string     `json:"manager,omitempty"`
	Subresource string     `json:"subresource,omitempty"`
	Operation   string     `json:"operation,omitempty"`
	Since       *time.Time `json:"since,omitempty"`
}

// Length is a list whose length or order is not as desired.
type Length struct {
	Path    string      `json:"path"`
	Length  int         `json:"length"`
	Problem schema.Kind `json:"problem"`
}

// Compare compares one object of an Application; live is nil if there is none. Private shows
// values that may be secrets.
func Compare(app *application.Application, e plan.Expected, live map[string]any, private bool) Object {
	found := Object{ID: Placed(app, e.ID), Missing: live == nil}
	if live == nil {
		return found
	}
	id, err := manifest.Identify(live)
	if err == nil {
		found.Namespace = id.Namespace
	}
	desired := desiredAt(app, e, id)
	culprits := blame.IndexOf(live)
	differences := e.Schema.Compare(desired, live).Details()
	for _, value := range e.Schema.Values(desired, live) {
		found.Fields = append(found.Fields, fieldOf(e, value, differences, culprits, Redactor{e.ID.Kind, private}))
	}
	for _, d := range differences {
		switch {
		case d.Kind == schema.TooShort, d.Kind == schema.TooLong, d.Kind == schema.Moved:
			items, _ := d.Have.([]any)
			found.Lengths = append(found.Lengths, Length{d.Path.String(), len(items), d.Kind})
		case d.Kind == schema.Changed && d.Want == nil: // no value is observed there
			field := Field{Path: d.Path.String(), Drift: true}
			field.Value, _ = Redactor{e.ID.Kind, private}.Conceal(d.Path, d.Have, nil)
			found.Fields = append(found.Fields, field)
		}
	}
	return found
}

// desiredAt returns the desired state of a live object, with the marks for its place.
func desiredAt(app *application.Application, e plan.Expected, live manifest.ID) map[string]any {
	return application.Marks(app.NamespacedName, app.UID, live).On(plan.Placed(e.Desired, live.Namespace))
}

func fieldOf(e plan.Expected, value schema.Value, differences schema.Differences, culprits blame.Index, s Redactor) Field {
	field := Field{Path: value.Place.String()}
	field.Value, field.Desired = s.Conceal(value.Place, value.Have, value.Want)
	if value.Path == nil {
		return field
	}
	field.Path = value.Path.String()
	field.Pinned = schema.ValueAt(e.Desired, value.Place) != nil && schema.ValueAt(e.Manifest, value.Place) == nil
	for _, d := range differences {
		if IsBelow(value.Path, d.Path) {
			field.Drift = field.Drift || d.Kind == schema.Changed
			field.Unknown = field.Unknown || d.Kind == schema.Unknown
		}
	}
	if culprit := culprits.Of(value.Path); culprit.Known() {
		field.Manager, field.Subresource, field.Operation = culprit.Manager, culprit.Subresource, culprit.Operation
		if !culprit.Time.IsZero() {
			field.Since = &culprit.Time
		}
	}
	return field
}

// Placed returns the identity of an object with its namespace on the cluster. The agent may map the
// namespace of the Application to another one.
func Placed(app *application.Application, id manifest.ID) manifest.ID {
	home := cmp.Or(id.Namespace, app.Namespace)
	found := namespacesOf(app, id, home)
	id.Namespace = home
	if len(found) == 1 && home == app.Namespace {
		id.Namespace = found[0]
	}
	return id
}

// namespacesOf returns the namespaces in which the agent has recorded objects of a kind and name.
// Home is the namespace of a record without one.
func namespacesOf(app *application.Application, id manifest.ID, home string) []string {
	var found []string
	add := func(recorded manifest.ID) {
		if at := cmp.Or(recorded.Namespace, home); IsNamesake(recorded, id) && !slices.Contains(found, at) {
			found = append(found, at)
		}
	}
	for _, held := range app.Inventory {
		add(held)
	}
	// Only the status has objects that the agent does not hold: those in conflict, and all in mode
	// observe. It counts after the inventory, because a kind that is not served has no place there.
	if len(found) == 0 && app.Status.ClusterName() == app.Cluster {
		for _, object := range app.Status.Objects {
			add(object.ID)
		}
	}
	return found
}

// IsNamesake reports whether two objects have the same kind and name, in any version.
func IsNamesake(a, b manifest.ID) bool {
	return a.GroupVersionKind().GroupKind() == b.GroupVersionKind().GroupKind() && a.Name == b.Name
}
