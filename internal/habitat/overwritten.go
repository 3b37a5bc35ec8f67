package habitat

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	corev1 "k8s.io/api/core/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// overwrittenSince gives the edits that the agent has set back since the last one
// that was told, the oldest first. Its history is bounded, and what is repeated is
// counted there: the last one told may not be found any more.
func overwrittenSince(app *application.Application, told *Overwritten) []Overwritten {
	var since []Overwritten
	for _, drift := range app.Status.Drifts {
		if drift.Repaired == "" {
			continue
		}
		edit := overwrittenBy(drift)
		if told != nil && edit.sameAs(*told) {
			break
		}
		if told == nil || !edit.Time.Before(&told.Time) {
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
	for _, field := range drift.Fields { // where an element became another one, its list is there twice
		if !slices.Contains(edit.Fields, field.Path) {
			edit.Fields = append(edit.Fields, field.Path)
		}
	}
	if more := len(edit.Fields) - mostFields; more > 0 {
		edit.Fields = append(edit.Fields[:mostFields], fmt.Sprintf("and %d more", more))
	}
	return edit
}

// mostFields is how many fields of one edit are told.
const mostFields = 10

func (o Overwritten) sameAs(other Overwritten) bool {
	return o.Time.Equal(&other.Time) && o.Object == other.Object && slices.Equal(o.Fields, other.Fields) && o.By == other.By && o.Count == other.Count
}

// String names what was edited, and says where to do so instead.
func (o Overwritten) String() string {
	by, what := "somebody", "deleted"
	if o.By != "" {
		by = o.By
	}
	if len(o.Fields) > 0 {
		what = "changed in " + strings.Join(o.Fields, ", ")
	}
	return fmt.Sprintf("%s was %s by %s, and is set back: make changes in the Habitat", o.Object, what, by)
}

// regarding is what an Event speaks of.
func regarding(h types.NamespacedName, uid types.UID) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: h.Namespace, Name: h.Name, UID: uid}
}
