package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/krake-observer/krake-observer/pkg/application"
)

func newHistoryCommand(e *environment) *cobra.Command {
	var output outputFlag
	command := &cobra.Command{
		Use:   "history NAME",
		Short: "Show what has drifted, which manager changed it, and the outcome",
		Long: fmt.Sprintf(`Show what has drifted, which manager changed it, and the outcome, the newest first.

The status of an Application stores the last %d drifts. COUNT is how often the same field
manager changed the same fields of an object, each time after a repair. A drift that was
repaired later, for instance after a hold, counts once: REPAIRED shows how long after it
was seen.

BY is the field manager according to the object: a hint, not a proof. Values that may be
secrets, and values of annotations, are never stored and not shown.`, application.MaxDrifts),
		Example: `  kubectl krake history web
  kubectl krake history web -o wide
  kubectl krake history web -o json`,
		Args: One("Application"),
		ValidArgsFunction: func(command *cobra.Command, typed []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(typed) > 0 { // it takes one name
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return completeNames(e)(command, typed, begun)
		},
		RunE: func(command *cobra.Command, names []string) error {
			i, err := getReadable(command.Context(), e, names[0])
			if err != nil {
				return err
			}
			return printHistory(e, i, output)
		},
	}
	output.addTo(command, asTable, asWide, asJSON, asYAML)
	return command
}

func printHistory(e *environment, i item, output outputFlag) error {
	drifts := i.app.Status.Drifts
	if output.isDocument() {
		items := append([]application.Drift{}, drifts...) // an empty list, not null
		return printDocument(e.Out, output.value, documentList[application.Drift]{documentVersion, "DriftList", i.key(), items})
	}
	switch {
	case len(drifts) > 0:
	case !i.admitted() || i.app.Status.State == "":
		fmt.Fprintf(e.ErrOut, "No agent has looked at Application %s yet.\n", i.key())
		return nil
	default:
		fmt.Fprintf(e.ErrOut, "Nothing of Application %s has drifted, as far as its status remembers.\n", i.key())
		return nil
	}
	return newTable(e.Out, painterFor(e.Out)).print(historyRows(drifts, i.stored.Namespace, output.value == asWide, e.now())...)
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
			changed := ""
			if drift.Changed != nil {
				changed = timeOf(drift.Changed.Time)
			}
			row = append(row, textCells(drift.Operation, changed)...)
		}
		rows = append(rows, append(row, repairedCell(drift), cell{text: fieldsText(drift)}))
	}
	return rows
}
