package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

type description struct {
	item

	beats heartbeats
	now   time.Time
}

type section struct {
	title  string
	header []cell
	rows   [][]cell
}

func (d description) about() [][]cell {
	v := overviewOf(d.item, d.beats, d.now)
	state := v.stateCell()
	if d.app != nil && d.app.Status.State != "" && v.state == stateAgentUnreachable {
		state.text += " (it was " + string(d.app.Status.State) + ")"
	}
	rows := [][]cell{
		titledRow("Name", v.name),
		titledRow("Namespace", v.namespace),
		titledRow("Created", d.timeAndAge(v.created)),
		titledRow("Cluster", v.cluster),
		{{text: "State:"}, state},
		{{text: "Ready:"}, v.readyCell()},
	}
	if v.message != "" {
		rows = append(rows, titledRow("Message", v.message))
	}
	if d.app == nil {
		return rows
	}
	if at := d.stored.DeletionTimestamp; at != nil {
		rows = append(rows, titledRow("Deleted", d.timeAndAge(at.Time)))
	}
	rows = append(slices.Concat(rows, d.wishes(v)), titledRow("Source", d.source()), titledRow("Observer schema", d.observerSchema()))
	if pods := d.app.Status.ContainerHealth; pods != nil {
		rows = append(rows, titledRow("Pods", fmt.Sprintf("%d desired, %d running, %d completed, %d failed",
			pods.DesiredPods, pods.RunningPods, pods.CompletedPods, pods.FailedPods)))
	}
	return rows
}

func titledRow(name, value string) []cell { return textCells(name+":", value) }

func (d description) timeAndAge(at time.Time) string {
	return timeOf(at) + " (" + age(at, d.now) + " ago)"
}

func (d description) wishes(v overview) [][]cell {
	w := d.app.Wishes
	rows := [][]cell{{{text: "Mode:"}, v.modeCell(d.now)}}
	for _, row := range []struct {
		said        bool
		name, value string
	}{
		{!v.heldUntil.IsZero(), "Held", "until " + timeOf(v.heldUntil)},
		{w.HeldBy != "" && w.Restraint(d.now) != "", "Held by", w.HeldBy},
		{w.DenyHolds, "Holds", "those on single objects do not count"},
		{d.app.ServiceAccount != "", "Service account", d.app.ServiceAccount},
		{w.Adopt, "Adopt", "what exists already is taken over"},
		{len(w.ValuesFrom) > 0, "Values from", d.app.Annotations[application.ValuesFromAnnotation]},
		{len(w.After) > 0, "After", strings.Join(w.After, ", ")},
		{w.DeletionPolicy == application.Orphan, "When deleted", "the objects stay"},
		{w.DeletionPolicy == application.Delete && !w.DeletesAll && slices.ContainsFunc(d.app.Inventory, manifest.ID.IsDefinition), "When deleted", "the definitions of kinds stay"},
		{len(d.app.Spec.Hooks.Enabled()) > 0, "Hooks", d.hooks()},
	} {
		if row.said {
			rows = append(rows, titledRow(row.name, row.value))
		}
	}
	return rows
}

func (d description) hooks() string {
	var words []string
	for _, hook := range d.app.Spec.Hooks.Enabled() {
		words = append(words, string(hook))
	}
	text := strings.Join(words, ", ")
	if d.app.Hooks.Completed {
		text += "; it has said that its work is done"
	}
	w := d.app.Wishes.Shutdown
	if w.GraceTime != nil {
		text += "; grace time " + w.GraceTime.String()
	}
	if w.Retries != nil {
		text += fmt.Sprintf("; retried %d times", *w.Retries)
	}
	if w.Strategy != "" {
		text += "; if it does not shut down: " + string(w.Strategy)
	}
	return text
}

func (d description) source() string {
	key, text := d.app.Spec.Source()
	source := key
	switch at, isURL, err := application.ParseSource(key, text); {
	case err != nil:
		source += ", from a URL that is refused: " + err.Error()
	case isURL && key != application.ManifestKey:
		source += ", from " + at.String()
	}
	if applied := d.app.LastApplied.Objects(); applied != nil {
		source += ", " + counted(len(applied), "object", "objects")
	}
	return source
}

func (d description) observerSchema() string {
	text := d.app.Spec.ObserverSchema
	if text == "" {
		return "by default, for all objects"
	}
	documents, err := manifest.Decode([]byte(text))
	if err != nil {
		return application.ObserverSchemaKey
	}
	return fmt.Sprintf("%s, for %d; by default for others", application.ObserverSchemaKey, len(documents))
}

func (d description) conditions() section {
	s := section{title: "Conditions", header: textCells("TYPE", "STATUS", "SINCE", "REASON", "MESSAGE")}
	shown := map[string]string{overviewOf(d.item, d.beats, d.now).message: "Message"} // where each text is already
	for _, c := range d.app.Status.Conditions {
		message, text := c.Message, told(c)
		if place, ok := shown[text]; !ok {
			shown[text] = c.Type
		} else if message != "" {
			message = "see " + place
		}
		s.rows = append(s.rows, []cell{
			{text: c.Type}, {string(c.Status), conditionColour(c)}, {text: agoOrNever(c.LastTransitionTime.Time, d.now)}, {text: c.Reason}, {text: message},
		})
	}
	return s
}

// conditionColour depends on the type: True is good of some conditions, and bad of others.
func conditionColour(c metav1.Condition) colour {
	good := metav1.ConditionFalse
	if c.Type == application.ReadyCondition || c.Type == application.ReconciledCondition {
		good = metav1.ConditionTrue
	}
	switch {
	case c.Status == good:
		return green
	case c.Status == metav1.ConditionUnknown, c.Type == application.MigratingCondition:
		return yellow
	}
	return red
}

func (d description) objects() section {
	s := section{title: "Objects", header: textCells("OBJECT", "HEALTH", "REASON", "MESSAGE")}
	for _, object := range d.app.Status.Objects {
		s.rows = append(s.rows, []cell{
			{text: objectText(object.ID, d.stored.Namespace)}, {object.Health, healthColour(object.Health)}, d.objectReason(object), {text: d.objectMessage(object)},
		})
	}
	for _, id := range d.app.Inventory {
		if _, shown := d.app.Status.Object(id); !shown {
			s.rows = append(s.rows, textCells(objectText(id, d.stored.Namespace), "", "", ""))
		}
	}
	return s
}

func (d description) objectReason(object application.ObjectStatus) cell {
	reason := object.Reason
	if slices.Contains(d.app.Adopted, object.ID) {
		reason = strings.TrimPrefix(reason+", adopted", ", ")
	}
	return cell{reason, reasonColour(object.Reason)}
}

func (d description) objectMessage(object application.ObjectStatus) string {
	parts := []string{strings.Join(object.Fields, ", "), object.Message}
	text := strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ": ")
	until, sure := d.heldUntil(object, d.now)
	if until.IsZero() || object.Reason == status.Held { // of which the message tells
		return text
	}
	text += "; held until " + timeOf(until)
	if !sure {
		text += ", unless its annotation was taken off"
	}
	return strings.TrimPrefix(text, "; ")
}

func healthColour(health string) colour {
	switch health {
	case "Current":
		return green
	case "Failed", "NotFound":
		return red
	case "":
		return plain
	}
	return yellow
}

func reasonColour(reason string) colour {
	switch reason {
	case "":
		return plain
	case status.Held, status.ObserveMode:
		return yellow
	}
	return red
}

func (d description) services() section {
	s := section{title: "Services"}
	for _, name := range slices.Sorted(maps.Keys(d.app.Status.Services)) {
		s.rows = append(s.rows, textCells(name, d.app.Status.Services[name]))
	}
	return s
}

// leaving returns how far the Application has shut down on clusters that it leaves.
func (d description) leaving() section {
	s := section{title: "Leaving", header: textCells("CLUSTER", "STATE", "ATTEMPT", "UNTIL", "MESSAGE")}
	add := func(cluster string, record application.ShutdownRecord) {
		var attempt, until string
		if record.Attempt > 0 {
			attempt, until = fmt.Sprint(record.Attempt), timeOf(record.Deadline.Time)
		}
		s.rows = append(s.rows, textCells(cluster, cmp.Or(string(record.State), none), attempt, until, record.Message))
	}
	if record := d.app.Hooks.Shutdown; record != nil {
		add(d.app.Holder, *record)
	}
	for _, cluster := range slices.Sorted(maps.Keys(d.app.Elsewhere)) {
		record := d.app.Elsewhere[cluster]
		if record.State == "" {
			record.Message = "it still has objects there"
		}
		add(cluster, record)
	}
	return s
}
