package cli

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/status"
)

func newDescribeCommand(e *environment) *cobra.Command {
	var o scope
	command := &cobra.Command{
		Use:   "describe [NAME]...",
		Short: "Show all that is known of Applications: objects, conditions, drifts",
		Long: `Show all that is known of Applications: what they are to be, how their objects are, the
conditions, and what has drifted, by whom, when, and repaired after how long.

All of it is what the agent has written, but for holds on objects, which are looked at on
their cluster, as far as you may read them. How the objects differ now is told by
"kubectl krake diff", and who has set which field by "kubectl krake blame".`,
		Example: `  kubectl krake describe web
  kubectl krake describe -l team=blue`,
		ValidArgsFunction: e.completeNames,
		RunE: func(command *cobra.Command, names []string) error {
			ctx := command.Context()
			if err := e.resolve(&o, names); err != nil {
				return err
			}
			items, failure := e.read(ctx, o)
			if failure != nil && len(items) == 0 {
				return failure
			}
			if len(items) == 0 {
				fmt.Fprintln(e.ErrOut, noneFound(o))
			}
			e.lookAtHolds(ctx, items)
			beats, now := e.heartbeatsOr(ctx, items), e.now()
			for at, i := range items {
				if at > 0 {
					fmt.Fprint(e.Out, "\n\n")
				}
				d := description{item: i, beats: beats, now: now, painter: painterFor(e.Out)}
				if err := d.print(e.Out); err != nil {
					return err
				}
			}
			return failure
		},
	}
	o.addTo(command)
	e.target.addFlags(command.Flags())
	return command
}

// description is what describe prints of one Application.
type description struct {
	item

	beats   heartbeats
	now     time.Time
	painter painter
}

// print prints one after the other, the first of them without a title.
func (d description) print(out io.Writer) error {
	if err := newTable(out, d.painter).print(d.about()...); err != nil {
		return err
	}
	for _, s := range d.sections() {
		if len(s.rows) == 0 {
			fmt.Fprintf(out, "%s:  %s\n", s.title, none)
			continue
		}
		fmt.Fprintf(out, "%s:\n", s.title)
		t := newTable(out, d.painter)
		t.indent = "  "
		if err := t.print(s.rows...); err != nil {
			return err
		}
	}
	return nil
}

// section is a table with a title.
type section struct {
	title string
	rows  [][]cell
}

// sections are those after the first, which has no title.
func (d description) sections() []section {
	if d.app == nil {
		return nil
	}
	status := d.app.Status
	sections := []section{{"Conditions", d.conditions()}, {"Objects", d.objects()}, {"Drifts", nil}}
	if len(status.Drifts) > 0 {
		sections[2].rows = historyRows(status.Drifts, d.stored.Namespace, false, d.now)
	}
	if len(status.Services) > 0 {
		sections = append(sections, section{"Services", services(status.Services)})
	}
	if leaving := d.leaving(); len(leaving) > 0 {
		sections = append(sections, section{"Leaving", leaving})
	}
	return append(sections, section{"Events", [][]cell{textCells(fmt.Sprintf(
		"kubectl events --namespace %s --for configmap/%s", d.stored.Namespace, d.stored.Name))}})
}

// about is what is said of the whole, in two columns.
func (d description) about() [][]cell {
	v := overviewOf(d.item, d.beats, d.now)
	rows := [][]cell{
		named("Name", v.name),
		named("Namespace", v.namespace),
		named("Created", timeOf(v.created)+" ("+age(v.created, d.now)+" ago)"),
		named("Cluster", v.cluster),
		{{text: "State:"}, d.stateCell(v)},
		{{text: "Ready:"}, v.readyCell()},
	}
	if v.message != "" {
		rows = append(rows, named("Message", v.message))
	}
	if d.app == nil {
		return rows
	}
	if at := d.stored.DeletionTimestamp; at != nil {
		rows = append(rows, named("Deleted", timeOf(at.Time)+" ("+age(at.Time, d.now)+" ago)"))
	}
	return slices.Concat(rows, d.wishes(v), d.spec(), d.pods())
}

func named(name, value string) []cell { return textCells(name+":", value) }

// stateCell also says what the agent has said last, if that does not count.
func (d description) stateCell(v overview) cell {
	c := v.stateCell()
	if d.app != nil && d.app.Status.State != "" && v.state == stateAgentUnreachable {
		c.text += " (it was " + string(d.app.Status.State) + ")"
	}
	return c
}

// wishes are what the annotations say.
func (d description) wishes(v overview) [][]cell {
	w := d.app.Wishes
	rows := [][]cell{{{text: "Mode:"}, v.modeCell(d.now)}}
	if !v.heldUntil.IsZero() {
		rows = append(rows, named("Held", "until "+timeOf(v.heldUntil)))
	}
	if w.DenyHolds {
		rows = append(rows, named("Holds", "those on single objects do not count"))
	}
	if account := d.app.ServiceAccount; account != "" {
		rows = append(rows, named("Service account", account))
	}
	if w.Adopt {
		rows = append(rows, named("Adopt", "what exists already is taken over"))
	}
	if w.DeletionPolicy == application.Orphan {
		rows = append(rows, named("When deleted", "the objects stay"))
	}
	if hooks := d.app.Spec.Hooks.Enabled(); len(hooks) > 0 {
		rows = append(rows, named("Hooks", d.hooks(hooks)))
	}
	return rows
}

func (d description) hooks(enabled []application.Hook) string {
	words := make([]string, 0, len(enabled))
	for _, hook := range enabled {
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

// spec says where the resources come from, and what is observed of them.
func (d description) spec() [][]cell {
	key, text := d.app.Spec.Source()
	source := key
	switch at, isURL, err := application.ParseSource(key, text); {
	case err != nil:
		source += ", from a URL that is refused: " + err.Error()
	case isURL && key != application.ManifestKey:
		source += ", from " + at.String()
	}
	schema := "by default, for all objects"
	if text := d.app.Spec.ObserverSchema; text != "" {
		schema = application.ObserverSchemaKey
		if documents, err := manifest.Decode([]byte(text)); err == nil {
			schema += fmt.Sprintf(", for %d; by default for others", len(documents))
		}
	}
	if applied := d.app.LastApplied.Objects(); applied != nil {
		source += ", " + counted(len(applied), "object", "objects")
	}
	return [][]cell{named("Source", source), named("Observer schema", schema)}
}

func (d description) pods() [][]cell {
	pods := d.app.Status.ContainerHealth
	if pods == nil {
		return nil
	}
	return [][]cell{named("Pods", fmt.Sprintf("%d desired, %d running, %d completed, %d failed",
		pods.DesiredPods, pods.RunningPods, pods.CompletedPods, pods.FailedPods))}
}

func (d description) conditions() [][]cell {
	if len(d.app.Status.Conditions) == 0 {
		return nil
	}
	rows := [][]cell{textCells("TYPE", "STATUS", "SINCE", "REASON", "MESSAGE")}
	for _, c := range d.app.Status.Conditions {
		rows = append(rows, []cell{
			{text: c.Type}, {string(c.Status), conditionColour(c)}, {text: agoOrNever(c.LastTransitionTime.Time, d.now)}, {text: c.Reason}, {text: c.Message},
		})
	}
	return rows
}

// conditionColour: of some conditions it is good to be true, of others it is not.
func conditionColour(c metav1.Condition) colour {
	isGood := metav1.ConditionFalse
	switch c.Type {
	case application.ReadyCondition, application.ReconciledCondition:
		isGood = metav1.ConditionTrue
	}
	switch {
	case c.Status == isGood:
		return green
	case c.Status == metav1.ConditionUnknown, c.Type == application.MigratingCondition:
		return yellow
	}
	return red
}

// objects are those of which there is anything to tell, and all others that are held.
func (d description) objects() [][]cell {
	rows := [][]cell{textCells("OBJECT", "HEALTH", "REASON", "MESSAGE")}
	shown := map[manifest.ID]bool{}
	for _, object := range d.app.Status.Objects {
		shown[object.ID] = true
		reason := object.Reason
		if d.isAdopted(object.ID) {
			reason = strings.TrimPrefix(reason+", adopted", ", ")
		}
		rows = append(rows, []cell{
			{text: objectText(object.ID, d.stored.Namespace)}, {object.Health, healthColour(object.Health)}, {reason, reasonColour(object.Reason)},
			{text: d.objectMessage(object)},
		})
	}
	for _, id := range d.app.Inventory {
		if !shown[id] {
			rows = append(rows, textCells(objectText(id, d.stored.Namespace), "", "", ""))
		}
	}
	if len(rows) == 1 {
		return nil
	}
	return rows
}

func (d description) isAdopted(id manifest.ID) bool { return slices.Contains(d.app.Adopted, id) }

func (d description) objectMessage(object application.ObjectStatus) string {
	var parts []string
	if len(object.Fields) > 0 {
		parts = append(parts, strings.Join(object.Fields, ", "))
	}
	if object.Message != "" {
		parts = append(parts, object.Message)
	}
	text := strings.Join(parts, ": ")
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
	case status.Held, status.Observed:
		return yellow
	}
	return red
}

func services(addresses map[string]string) [][]cell {
	var rows [][]cell
	for _, name := range slices.Sorted(maps.Keys(addresses)) {
		rows = append(rows, textCells(name, addresses[name]))
	}
	return rows
}

// leaving are clusters from which it is to go: how far it has shut down there.
func (d description) leaving() [][]cell {
	rows := [][]cell{textCells("CLUSTER", "STATE", "ATTEMPT", "UNTIL", "MESSAGE")}
	if record := d.app.Hooks.Shutdown; record != nil {
		rows = append(rows, shutdownRow(d.app.Holder, *record))
	}
	for _, cluster := range slices.Sorted(maps.Keys(d.app.Elsewhere)) {
		record := d.app.Elsewhere[cluster]
		if record.State == "" {
			record.Message = "it still has objects there"
		}
		rows = append(rows, shutdownRow(cluster, record))
	}
	if len(rows) == 1 {
		return nil
	}
	return rows
}

func shutdownRow(cluster string, record application.ShutdownRecord) []cell {
	var attempt, until string
	if record.Attempt > 0 {
		attempt, until = fmt.Sprint(record.Attempt), timeOf(record.Deadline.Time)
	}
	return []cell{{text: cluster}, {cmp.Or(string(record.State), none), plain}, {text: attempt}, {text: until}, {text: record.Message}}
}
