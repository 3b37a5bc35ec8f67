package inspect

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/krake-observer/krake-observer/internal/cli/apps"
	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/cli/view"
	"github.com/krake-observer/krake-observer/pkg/application"
)

func newHistoryCommand(e *env.Environment) *cobra.Command {
	var output env.Output
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
		Args: env.One("Application"),
		ValidArgsFunction: func(command *cobra.Command, typed []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(typed) > 0 { // it takes one name
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return apps.CompleteNames(e)(command, typed, begun)
		},
		RunE: func(command *cobra.Command, names []string) error {
			i, err := apps.GetReadable(command.Context(), e, names[0])
			if err != nil {
				return err
			}
			return printHistory(e, i, output)
		},
	}
	output.AddTo(command, env.AsTable, env.AsWide, env.AsJSON, env.AsYAML)
	return command
}

func printHistory(e *env.Environment, i apps.Item, output env.Output) error {
	drifts := i.App.Status.Drifts
	if output.IsDocument() {
		items := append([]application.Drift{}, drifts...) // an empty list, not null
		return env.PrintDocument(e.Out, output.Value, documentList[application.Drift]{documentVersion, "DriftList", i.Key(), items})
	}
	switch {
	case len(drifts) > 0:
	case !i.IsAdmitted() || i.App.Status.State == "":
		fmt.Fprintf(e.ErrOut, "No agent has looked at Application %s yet.\n", i.Key())
		return nil
	default:
		fmt.Fprintf(e.ErrOut, "Nothing of Application %s has drifted, as far as its status remembers.\n", i.Key())
		return nil
	}
	return env.NewTable(e.Out, env.PainterFor(e.Out)).Print(historyRows(drifts, i.Stored.Namespace, output.Value == env.AsWide, e.Now())...)
}

// historyRows are the drifts of an Application, with a header.
func historyRows(drifts []application.Drift, home string, wide bool, now time.Time) [][]env.Cell {
	header := env.TextCells("SEEN", "COUNT", "OBJECT", "BY", "REPAIRED", "FIELDS")
	if wide {
		header = env.TextCells("SEEN", "COUNT", "OBJECT", "BY", "OPERATION", "CHANGED", "REPAIRED", "FIELDS")
	}
	rows := [][]env.Cell{header}
	for _, drift := range drifts {
		row := env.TextCells(env.Age(drift.Seen.Time, now)+" ago", fmt.Sprint(max(drift.Count, 1)), view.ObjectText(drift.Object, home), view.WriterOf(drift))
		if wide {
			row[0] = env.Cell{Text: env.TimeOf(drift.Seen.Time)}
			changed := ""
			if drift.Changed != nil {
				changed = env.TimeOf(drift.Changed.Time)
			}
			row = append(row, env.TextCells(drift.Operation, changed)...)
		}
		rows = append(rows, append(row, view.RepairedCell(drift), env.Cell{Text: view.FieldsText(drift)}))
	}
	return rows
}
