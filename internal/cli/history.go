package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/blame"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

func newHistoryCommand(e *environment) *cobra.Command {
	var output outputFlag
	command := &cobra.Command{
		Use:   "history NAME",
		Short: "Show what has drifted, by whom, and what became of it",
		Long: fmt.Sprintf(`Show what has drifted, by whom, and what became of it, the newest first.

The status of an Application remembers the last %d drifts. COUNT is how often the same
fields of an object were changed by the same field manager, each time after they were in
order again. One that was left as it was, while it was held for instance, and repaired
later, counts once: REPAIRED tells how long after it was seen.

BY is the field manager that the object itself names: a hint, not a proof. Values that
may be secrets, and those of annotations, are stored nowhere, and not shown.`, application.MaxDrifts),
		Example: `  kubectl krake history web
  kubectl krake history web -o wide
  kubectl krake history web -o json`,
		Args:              One("Application"),
		ValidArgsFunction: e.completeName,
		RunE: func(command *cobra.Command, names []string) error {
			i, err := e.get(command.Context(), names[0])
			if err != nil {
				return err
			}
			return e.history(i, output)
		},
	}
	output.addTo(command, asTable, asWide, asJSON, asYAML)
	return command
}

func (e *environment) history(i item, output outputFlag) error {
	if i.err != nil {
		return i.err
	}
	drifts := i.app.Status.Drifts
	if output.isDocument() {
		list := driftList{APIVersion: documentVersion, Kind: "DriftList", Application: i.key(), Items: []application.Drift{}}
		list.Items = append(list.Items, drifts...)
		return printDocument(e.Out, output.value, list)
	}
	if len(drifts) == 0 {
		fmt.Fprintln(e.ErrOut, noDrifts(i))
		return nil
	}
	return newTable(e.Out, painterFor(e.Out)).print(historyRows(drifts, i.stored.Namespace, output.value == asWide, e.now())...)
}

// driftList is what history prints as JSON or YAML: the drifts as they are stored.
type driftList struct {
	APIVersion  string              `json:"apiVersion"`
	Kind        string              `json:"kind"`
	Application string              `json:"application"`
	Items       []application.Drift `json:"items"`
}

// noDrifts tells that nothing has drifted from that nobody has looked.
func noDrifts(i item) string {
	if !i.admitted() || i.app.Status.State == "" {
		return fmt.Sprintf("No agent has looked at Application %s yet.", i.key())
	}
	return fmt.Sprintf("Nothing of Application %s has drifted, as far as its status remembers.", i.key())
}

// historyRows are the drifts of an Application, with a header.
func historyRows(drifts []application.Drift, home string, wide bool, now time.Time) [][]cell {
	header := textCells("SEEN", "COUNT", "OBJECT", "BY", "REPAIRED", "FIELDS")
	if wide {
		header = textCells("SEEN", "COUNT", "OBJECT", "BY", "OPERATION", "CHANGED", "REPAIRED", "FIELDS")
	}
	rows := [][]cell{header}
	for _, drift := range drifts {
		row := textCells(age(drift.Seen.Time, now)+" ago", fmt.Sprint(max(drift.Count, 1)), objectText(drift.Object, home), byWhom(drift))
		if wide {
			row[0] = cell{text: timeOf(drift.Seen.Time)}
			row = append(row, textCells(drift.Operation, changedAt(drift))...)
		}
		rows = append(rows, append(row, repairedCell(drift), cell{text: fieldsText(drift)}))
	}
	return rows
}

// objectText gives "Deployment/web", and "Deployment/web in other" of another namespace.
func objectText(id manifest.ID, home string) string {
	text := id.Kind + "/" + id.Name
	if id.Namespace != "" && id.Namespace != home {
		text += " in " + id.Namespace
	}
	return text
}

func byWhom(drift application.Drift) string {
	return blame.Culprit{Manager: drift.Manager, Subresource: drift.Subresource}.Name()
}

func changedAt(drift application.Drift) string {
	if drift.Changed == nil {
		return ""
	}
	return timeOf(drift.Changed.Time)
}

// repairedCell gives "reverted in 12ms", "recreated", and "no".
func repairedCell(drift application.Drift) cell {
	if drift.Repaired == "" {
		return cell{"no", yellow}
	}
	text := strings.ToLower(strings.TrimPrefix(drift.Repaired, "Drift"))
	if drift.After != nil {
		text += " in " + shortly(drift.After.Duration)
	}
	return cell{text, green}
}

// fieldsText gives "spec.replicas: 2 -> 5", what was wanted before what there was. Of a
// drift without fields the object itself was gone.
func fieldsText(drift application.Drift) string {
	if len(drift.Fields) == 0 {
		return "(the object itself was gone)"
	}
	texts := make([]string, 0, len(drift.Fields))
	for _, field := range drift.Fields {
		text := field.Path
		if field.Want != nil || field.Have != nil {
			text += ": " + plainText(field.Want) + " -> " + plainText(field.Have)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}
