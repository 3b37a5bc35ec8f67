package forecast

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// maxValue bounds the bytes of a value in a text.
const maxValue = 64

// TextOf returns what a user reads about a difference: the field, who manages it, and what the loop sets it to.
// It never has a value that may be private. after is the object after the request.
func TextOf(app *application.Application, id manifest.ID, d schema.Difference, after map[string]any) string {
	what := "will be set back"
	switch d.Kind {
	case schema.TooShort:
		what = "will get back what was removed"
	case schema.TooLong:
		what = "will lose what was added"
	case schema.Moved:
		what = "will be put back in order"
	default:
		if d.Want == nil {
			what = "will be removed"
		} else if value := shown(id.Kind, d.Path, d.Want); value != "" {
			what += " to " + value
		}
	}
	return fmt.Sprintf("%s is managed by Application %s and %s.", placeOf(id.Kind, d.Path, after), app.NamespacedName, what)
}

// WayOut returns what a user can do whose changes the loop reverts.
func WayOut(app *application.Application, id manifest.ID, undone schema.Differences) string {
	if _, fields := plan.SplitMarks(undone); len(fields) == 0 {
		return fmt.Sprintf("The agent needs it to know the object, even while it is held. To change it, stop the agent first: kubectl krake suspend -n %s %s",
			app.Namespace, app.Name)
	}
	target := " " + strings.ToLower(id.Kind) + "/" + id.Name
	if app.Settings.DenyHolds {
		target = "" // holds on objects have no effect
	}
	return fmt.Sprintf("Change it there, or hold it first: kubectl krake hold -n %s %s%s", app.Namespace, app.Name, target)
}

// TextOfDeletion returns what a user reads about an object that the loop creates again.
func TextOfDeletion(app *application.Application, id manifest.ID) string {
	return fmt.Sprintf("%s/%s is managed by Application %s and will be created again. Leave it out of the manifest there, or stop the agent first: kubectl krake suspend -n %s %s",
		strings.ToLower(id.Kind), id.Name, app.NamespacedName, app.Namespace, app.Name)
}

// placeOf writes a path with the names of list elements: spec.template.spec.containers[web].image.
func placeOf(kind string, path schema.Path, live map[string]any) string {
	var text string
	begin := 0
	for i, step := range path {
		if step.Field == "" && step.Index >= 0 {
			text = join(text, path[begin:i]) + "[" + nameOf(kind, path[:i+1], live) + "]"
			begin = i + 1
		}
	}
	return join(text, path[begin:])
}

func join(text string, fields schema.Path) string {
	next := fields.String()
	if text != "" && next != "" && next[0] != '[' {
		text += "."
	}
	return text + next
}

// nameOf returns the name of the element at a path, or its index if it has none, or a private one.
func nameOf(kind string, path schema.Path, live map[string]any) string {
	at := append(slices.Clip(path), schema.Step{Field: "name", Index: -1})
	if name := shown(kind, at, schema.ValueAt(live, at)); name != "" {
		return name
	}
	return strconv.Itoa(path[len(path)-1].Index)
}

// shown returns a value as a text, "" if it is long, of several parts or lines, or may be private. An API
// server passes no warning on that has control characters.
func shown(kind string, path schema.Path, value any) string {
	if status.IsPrivate(kind, path, value) {
		return ""
	}
	switch value := value.(type) {
	case bool:
		return strconv.FormatBool(value)
	case int64, float64:
		return fmt.Sprint(value)
	case string:
		if len(value) <= maxValue && !strings.ContainsFunc(value, unicode.IsControl) {
			return value
		}
	}
	return ""
}
