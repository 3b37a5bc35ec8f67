package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/internal/blame"
	"github.com/krake-observer/krake-observer/internal/cli/apps"
	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// Description is an Application with all that is known of it, as tables.
type Description struct {
	apps.Item

	Beats apps.Heartbeats
	Now   time.Time
}

// Section is a table with a title. Its header is nil if the columns have no names.
type Section struct {
	Title  string
	Header []env.Cell
	Rows   [][]env.Cell
}

// About returns the settings, and the state as a whole.
func (d Description) About() [][]env.Cell {
	v := OverviewOf(d.Item, d.Beats, d.Now)
	state := v.StateCell()
	if d.App != nil && d.App.Status.State != "" && v.State == StateAgentUnreachable {
		state.Text += " (it was " + string(d.App.Status.State) + ")"
	}
	rows := [][]env.Cell{
		titledRow("Name", v.Name),
		titledRow("Namespace", v.Namespace),
		titledRow("Created", d.timeAndAge(v.Created)),
		titledRow("Cluster", v.Cluster),
		{{Text: "State:"}, state},
		{{Text: "Ready:"}, v.ReadyCell()},
	}
	if v.Message != "" {
		rows = append(rows, titledRow("Message", v.Message))
	}
	if d.App == nil {
		return rows
	}
	if at := d.Stored.DeletionTimestamp; at != nil {
		rows = append(rows, titledRow("Deleted", d.timeAndAge(at.Time)))
	}
	rows = append(slices.Concat(rows, d.settings(v)), titledRow("Source", d.source()), titledRow("Observer schema", d.observerSchema()))
	if pods := d.App.Status.ContainerHealth; pods != nil {
		rows = append(rows, titledRow("Pods", fmt.Sprintf("%d desired, %d running, %d completed, %d failed",
			pods.DesiredPods, pods.RunningPods, pods.CompletedPods, pods.FailedPods)))
	}
	return rows
}

func titledRow(name, value string) []env.Cell { return env.TextCells(name+":", value) }

func (d Description) timeAndAge(at time.Time) string {
	return env.TimeOf(at) + " (" + env.Age(at, d.Now) + " ago)"
}

func (d Description) settings(v Overview) [][]env.Cell {
	w := d.App.Settings
	rows := [][]env.Cell{{{Text: "Mode:"}, v.ModeCell(d.Now)}}
	for _, row := range []struct {
		said        bool
		name, value string
	}{
		{!v.HeldUntil.IsZero(), "Held", "until " + env.TimeOf(v.HeldUntil)},
		{w.HeldBy != "" && w.Restraint(d.Now) != "", "Held by", w.HeldBy},
		{w.DenyHolds, "Holds", "those on single objects do not count"},
		{d.App.ServiceAccount != "", "Service account", d.App.ServiceAccount},
		{w.Adopt, "Adopt", "what exists already is taken over"},
		{len(w.ValuesFrom) > 0, "Values from", d.App.Annotations[application.ValuesFromAnnotation]},
		{len(w.After) > 0, "After", strings.Join(w.After, ", ")},
		{w.DeletionPolicy == application.Orphan, "When deleted", "the objects stay"},
		{w.DeletionPolicy == application.Delete && !w.DeletesAll && slices.ContainsFunc(d.App.Inventory, manifest.ID.IsDefinition), "When deleted", "the definitions of kinds stay"},
		{len(d.App.Spec.Hooks.Enabled()) > 0, "Hooks", d.hooks()},
	} {
		if row.said {
			rows = append(rows, titledRow(row.name, row.value))
		}
	}
	return rows
}

func (d Description) hooks() string {
	var words []string
	for _, hook := range d.App.Spec.Hooks.Enabled() {
		words = append(words, string(hook))
	}
	text := strings.Join(words, ", ")
	if d.App.Hooks.Completed {
		text += "; it has said that its work is done"
	}
	w := d.App.Settings.Shutdown
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

func (d Description) source() string {
	key, text := d.App.Spec.Source()
	source := key
	switch at, isURL, err := application.ParseSource(key, text); {
	case err != nil:
		source += ", from a URL that is refused: " + err.Error()
	case isURL && key != application.ManifestKey:
		source += ", from " + at.String()
	}
	if applied := d.App.LastApplied.Objects(); applied != nil {
		source += ", " + env.Counted(len(applied), "object", "objects")
	}
	return source
}

func (d Description) observerSchema() string {
	text := d.App.Spec.ObserverSchema
	if text == "" {
		return "by default, for all objects"
	}
	documents, err := manifest.Decode([]byte(text))
	if err != nil {
		return application.ObserverSchemaKey
	}
	return fmt.Sprintf("%s, for %d; by default for others", application.ObserverSchemaKey, len(documents))
}

// Conditions returns the conditions, each text once.
func (d Description) Conditions() Section {
	s := Section{Title: "Conditions", Header: env.TextCells("TYPE", "STATUS", "SINCE", "REASON", "MESSAGE")}
	shown := map[string]string{OverviewOf(d.Item, d.Beats, d.Now).Message: "Message"} // where each text is already
	for _, c := range d.App.Status.Conditions {
		message, text := c.Message, told(c)
		if place, ok := shown[text]; !ok {
			shown[text] = c.Type
		} else if message != "" {
			message = "see " + place
		}
		s.Rows = append(s.Rows, []env.Cell{
			{Text: c.Type}, {Text: string(c.Status), Colour: conditionColour(c)}, {Text: env.AgoOrNever(c.LastTransitionTime.Time, d.Now)}, {Text: c.Reason}, {Text: message},
		})
	}
	return s
}

// conditionColour depends on the type: True is good of some conditions, and bad of others.
func conditionColour(c metav1.Condition) env.Colour {
	good := metav1.ConditionFalse
	if c.Type == application.ReadyCondition || c.Type == application.ReconciledCondition {
		good = metav1.ConditionTrue
	}
	switch {
	case c.Status == good:
		return env.Green
	case c.Status == metav1.ConditionUnknown, c.Type == application.MigratingCondition:
		return env.Yellow
	}
	return env.Red
}

// Objects returns the objects of the status, and others that the Application holds.
func (d Description) Objects() Section {
	s := Section{Title: "Objects", Header: env.TextCells("OBJECT", "HEALTH", "REASON", "MESSAGE")}
	for _, object := range d.App.Status.Objects {
		s.Rows = append(s.Rows, []env.Cell{
			{Text: ObjectText(object.ID, d.Stored.Namespace)}, {Text: object.Health, Colour: HealthColour(object.Health)}, d.ObjectReason(object), {Text: d.ObjectMessage(object)},
		})
	}
	for _, id := range d.App.Inventory {
		if _, shown := d.App.Status.Object(id); !shown {
			s.Rows = append(s.Rows, env.TextCells(ObjectText(id, d.Stored.Namespace), "", "", ""))
		}
	}
	return s
}

// ObjectReason returns why an object is not as desired, and whether it was adopted.
func (d Description) ObjectReason(object application.ObjectStatus) env.Cell {
	reason := object.Reason
	if slices.Contains(d.App.Adopted, object.ID) {
		reason = strings.TrimPrefix(reason+", adopted", ", ")
	}
	return env.Cell{Text: reason, Colour: reasonColour(object.Reason)}
}

// ObjectMessage returns the fields that differ, the message of the status, and the hold of an object.
func (d Description) ObjectMessage(object application.ObjectStatus) string {
	parts := []string{strings.Join(object.Fields, ", "), object.Message}
	text := strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ": ")
	until, sure := d.HeldUntil(object, d.Now)
	if until.IsZero() || object.Reason == status.Held { // of which the message tells
		return text
	}
	text += "; held until " + env.TimeOf(until)
	if !sure {
		text += ", unless its annotation was taken off"
	}
	return strings.TrimPrefix(text, "; ")
}

// HealthColour is the colour of a health.
func HealthColour(health string) env.Colour {
	switch health {
	case "Current":
		return env.Green
	case "Failed", "NotFound":
		return env.Red
	case "":
		return env.Plain
	}
	return env.Yellow
}

func reasonColour(reason string) env.Colour {
	switch reason {
	case "":
		return env.Plain
	case status.Held, status.ObserveMode:
		return env.Yellow
	}
	return env.Red
}

// Services returns the addresses of Services.
func (d Description) Services() Section {
	s := Section{Title: "Services"}
	for _, name := range slices.Sorted(maps.Keys(d.App.Status.Services)) {
		s.Rows = append(s.Rows, env.TextCells(name, d.App.Status.Services[name]))
	}
	return s
}

// Leaving returns how far the Application has shut down on clusters that it leaves.
func (d Description) Leaving() Section {
	s := Section{Title: "Leaving", Header: env.TextCells("CLUSTER", "STATE", "ATTEMPT", "UNTIL", "MESSAGE")}
	add := func(cluster string, record application.ShutdownRecord) {
		var attempt, until string
		if record.Attempt > 0 {
			attempt, until = fmt.Sprint(record.Attempt), env.TimeOf(record.Deadline.Time)
		}
		s.Rows = append(s.Rows, env.TextCells(cluster, cmp.Or(string(record.State), env.None), attempt, until, record.Message))
	}
	if record := d.App.Hooks.Shutdown; record != nil {
		add(d.App.Holder, *record)
	}
	for _, cluster := range slices.Sorted(maps.Keys(d.App.Elsewhere)) {
		record := d.App.Elsewhere[cluster]
		if record.State == "" {
			record.Message = "it still has objects there"
		}
		add(cluster, record)
	}
	return s
}

// ObjectText returns "Deployment/web", and "Deployment/web in other" of another namespace.
func ObjectText(id manifest.ID, home string) string {
	text := id.Kind + "/" + id.Name
	if id.Namespace != "" && id.Namespace != home {
		text += " in " + id.Namespace
	}
	return text
}

// WriterOf returns the field manager that changed the object.
func WriterOf(drift application.Drift) string {
	return blame.Culprit{Manager: drift.Manager, Subresource: drift.Subresource}.Name()
}

// RepairedCell returns "reverted in 12ms", "recreated", and "no".
func RepairedCell(drift application.Drift) env.Cell {
	if drift.Repaired == "" {
		return env.Cell{Text: "no", Colour: env.Yellow}
	}
	text := strings.ToLower(strings.TrimPrefix(drift.Repaired, "Drift"))
	if drift.After != nil {
		text += " in " + env.Shortly(drift.After.Duration)
	}
	return env.Cell{Text: text, Colour: env.Green}
}

// FieldsText returns "spec.replicas: 2 -> 5": the desired value before the live one.
func FieldsText(drift application.Drift) string {
	if len(drift.Fields) == 0 {
		return "(the object itself was gone)"
	}
	texts := make([]string, 0, len(drift.Fields))
	for _, field := range drift.Fields {
		text := field.Path
		if field.Removed {
			texts = append(texts, text+": removed, because it cannot stand beside a desired value")
			continue
		}
		if field.Want != nil || field.Have != nil {
			text += ": " + lens.PlainText(field.Want) + " -> " + lens.PlainText(field.Have)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}
