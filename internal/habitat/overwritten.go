package habitat

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// Overwritten is an edit of a sub-resource that the agent has reverted.
type Overwritten struct {
	Time   metav1.Time `json:"time"`
	Object string      `json:"object"`
	Fields []string    `json:"fields,omitempty"`
	By     string      `json:"by,omitempty"`
	// Count is how often the same manager made the same edit.
	Count int `json:"count,omitempty"`
}

// mostFields is how many fields of one edit are listed.
const mostFields = 10

// overwrittenSince returns the reverted edits after the last reported one, the oldest
// first. The agent's history is bounded, and counts repetitions in their first entry, so
// it may not contain the last reported edit.
func overwrittenSince(app *application.Application, reported *Overwritten) []Overwritten {
	var since []Overwritten
	for _, drift := range app.Status.Drifts {
		if drift.Repaired == "" {
			continue
		}
		edit := overwrittenBy(drift)
		if reported != nil && edit.isSame(*reported) {
			break
		}
		if reported == nil || !edit.Time.Before(&reported.Time) {
			since = append(since, edit)
		}
	}
	slices.Reverse(since)
	return since
}

func overwrittenBy(drift application.Drift) Overwritten {
	edit := Overwritten{
		Time: drift.Seen, Object: drift.Object.Kind + "/" + drift.Object.Name, By: drift.Manager, Count: drift.Count,
	}
	for _, field := range drift.Fields { // a list with a replaced element is there twice
		if !slices.Contains(edit.Fields, field.Path) {
			edit.Fields = append(edit.Fields, field.Path)
		}
	}
	if more := len(edit.Fields) - mostFields; more > 0 {
		edit.Fields = append(edit.Fields[:mostFields], fmt.Sprintf("and %d more", more))
	}
	return edit
}

func (o Overwritten) isSame(other Overwritten) bool {
	return o.Time.Equal(&other.Time) && o.Object == other.Object && slices.Equal(o.Fields, other.Fields) && o.By == other.By && o.Count == other.Count
}

// String names the edit, and where to make it instead.
func (o Overwritten) String() string {
	by, what := "another client", "deleted"
	if o.By != "" {
		by = o.By
	}
	if len(o.Fields) > 0 {
		what = "changed in " + strings.Join(o.Fields, ", ")
	}
	return fmt.Sprintf("%s was %s by %s, and is set back: make changes in the Habitat", o.Object, what, by)
}
