package forecast

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/internal/health"
	"github.com/krake-observer/krake-observer/internal/pacing"
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Setting has the inputs that are neither Application nor object.
type Setting struct {
	Now time.Time
	// MaxHold bounds a hold on one object, as for the loop.
	MaxHold time.Duration
}

// Undone returns the differences that a request makes in an object and the loop reverts. before and
// after are the whole object. Differences that were there before are not among them: who repairs half of a
// drift is not warned of the other half.
func Undone(app *application.Application, o *plan.Object, before, after map[string]any, setting Setting) schema.Differences {
	known, _ := app.Status.Object(o.ID)
	if !carriesOut(app, known) || isBeingDeleted(after) || !belongs(app, before) {
		return nil
	}
	marks, fields := plan.SplitMarks(added(drift(o, before), drift(o, after)).Details())
	asked, _, _ := unstructured.NestedString(after, "metadata", "annotations", application.HoldUntilAnnotation)
	if until, _ := pacing.HeldUntil(app.Settings, known.Hold, asked, setting.MaxHold, setting.Now); !until.IsZero() {
		return marks // observers do not see an object without them, so the loop restores them on a held object, too
	}
	fields = slices.DeleteFunc(fields, func(d schema.Difference) bool { return isRefused(app, known, d.Path) })
	return slices.Concat(marks, fields)
}

// Recreated reports whether the loop creates an object again that a request deletes. It does so for
// held objects, too, and not for a Job that has finished and has a TTL.
func Recreated(app *application.Application, o *plan.Object, before map[string]any) bool {
	known, _ := app.Status.Object(o.ID)
	return carriesOut(app, known) && !isBeingDeleted(before) && belongs(app, before) && health.Of(before).End == ""
}

// belongs reports whether an object names the Application as its owner. The loop may know better of an
// object that has just lost its marks, and restores them. It leaves such an object alone if it has not seen the
// marks since its start, as after a suspension.
func belongs(app *application.Application, object map[string]any) bool {
	owner, isMarked := application.OwnerOf(object)
	return isMarked && owner == app.NamespacedName
}

// idle are the reasons for which the loop leaves an object alone, until the spec or rights change.
var idle = []string{status.Refused, status.InvalidTosca, status.NoAccount, status.Forbidden}

// carriesOut reports whether the loop repairs an object. A new spec has another chance.
func carriesOut(app *application.Application, known application.ObjectStatus) bool {
	return !app.Deleted && app.Settings.Mode == application.Enforce && (!isObserved(app) || !slices.Contains(idle, known.Reason))
}

// isObserved reports whether the status is about the present spec.
func isObserved(app *application.Application) bool {
	return app.Status.ObservedSpec == app.Spec.Digest()
}

func isBeingDeleted(object map[string]any) bool {
	at, _, _ := unstructured.NestedString(object, "metadata", "deletionTimestamp")
	return at != ""
}

// drift returns what the loop would patch in a live object.
func drift(o *plan.Object, live map[string]any) schema.Differences {
	return slices.DeleteFunc(o.Marked.Compare(o.MarkedDesired(), live).Drift(), func(d schema.Difference) bool {
		return len(schema.Differences{d}.Patch()) == 0 // no patch can remove it
	})
}

// index is the index of an element in the text of a path.
var index = regexp.MustCompile(`\[[0-9]+\]`)

// isRefused reports whether the API server refuses to set the field. The loop leaves it alone. The status
// has the paths, with the indices of then, and not the values.
func isRefused(app *application.Application, known application.ObjectStatus, path schema.Path) bool {
	return known.Reason == status.Invalid && isObserved(app) && slices.ContainsFunc(known.Fields, func(refused string) bool {
		return index.ReplaceAllString(refused, "[]") == index.ReplaceAllString(path.String(), "[]")
	})
}

// added returns the differences of after that before does not have.
func added(before, after schema.Differences) schema.Differences {
	had := map[string]int{}
	for _, d := range before {
		for _, one := range partsOf(d) {
			had[one]++
		}
	}
	return slices.DeleteFunc(after, func(d schema.Difference) bool {
		isKnown := true
		for _, one := range partsOf(d) {
			had[one]--
			isKnown = isKnown && had[one] >= 0
		}
		return isKnown
	})
}

// partsOf returns texts that identify the parts of a difference in both versions of an object. Indices
// are left out, because elements move. A list is not compared as a whole, because its elements have
// other fields, too: each missing element is a part, and so is each surplus one.
func partsOf(d schema.Difference) []string {
	where := strings.Join(d.Path.Names(), "/")
	switch {
	case len(d.Parts) > 0:
		var parts []string
		for _, part := range d.Parts {
			parts = append(parts, partsOf(part)...)
		}
		return parts
	case d.Kind == schema.TooLong:
		return slices.Repeat([]string{partOf(d.Kind, where)}, len(d.Cut))
	case d.Kind == schema.TooShort:
		return append(missingParts(where, d.Want), slices.Repeat([]string{partOf(schema.TooLong, where)}, len(d.Cut))...)
	case d.Kind == schema.Moved:
		return []string{partOf(d.Kind, where)}
	case d.Have == nil:
		return missingParts(where, d.Want)
	}
	return []string{partOf(d.Kind, where, d.Want, d.Have)}
}

// missingParts returns the parts of an absent value: a user may restore an object field by field, and a
// list element by element.
func missingParts(where string, value any) []string {
	var parts []string
	switch value := value.(type) {
	case map[string]any:
		for name, field := range value {
			parts = append(parts, missingParts(where+"/"+name, field)...)
		}
	case []any:
		for _, element := range value {
			parts = append(parts, partOf(schema.TooShort, where, element))
		}
	}
	if len(parts) == 0 {
		parts = append(parts, partOf(schema.Changed, where, value))
	}
	return parts
}

func partOf(kind schema.Kind, where string, values ...any) string {
	text, err := json.Marshal(values)
	if err != nil { // not JSON, which no object has
		text = nil
	}
	return string(kind) + " " + where + " " + string(text)
}
