package inspect

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/krake-observer/krake-observer/internal/cli/apps"
	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/cli/view"
)

func newDescribeCommand(e *env.Environment) *cobra.Command {
	var o apps.Scope
	command := &cobra.Command{
		Use:   "describe [NAME]...",
		Short: "Show everything about Applications: objects, conditions, drifts",
		Long: `Show everything about Applications: their settings, the state of their objects, the
conditions, and each drift with its field manager, its time, and how long the repair took.

All of it was written by the agent, except holds on objects. Those are read from their
cluster if you have the right. "kubectl krake diff" shows how the objects differ now, and
"kubectl krake blame" who has set which field.`,
		Example: `  kubectl krake describe web
  kubectl krake describe -l team=blue`,
		ValidArgsFunction: apps.CompleteNames(e),
		RunE: func(command *cobra.Command, names []string) error {
			ctx := command.Context()
			if err := o.Resolve(e, names); err != nil {
				return err
			}
			items, failure := o.Read(ctx, e)
			if failure != nil && len(items) == 0 {
				return failure
			}
			if len(items) == 0 {
				fmt.Fprintln(e.ErrOut, o.NoneFound())
			}
			apps.ReadHolds(ctx, e, items)
			beats, now := apps.HeartbeatsOf(ctx, e, items), e.Now()
			for at, i := range items {
				if at > 0 {
					fmt.Fprint(e.Out, "\n\n")
				}
				d := view.Description{Item: i, Beats: beats, Now: now}
				if err := printDescription(e.Out, d, env.PainterFor(e.Out)); err != nil {
					return err
				}
			}
			return failure
		},
	}
	o.AddTo(command)
	e.Target.AddFlags(command.Flags())
	return command
}

// printDescription prints the tables one after the other, the first of them without a title.
func printDescription(out io.Writer, d view.Description, p env.Painter) error {
	if err := env.NewTable(out, p).Print(d.About()...); err != nil {
		return err
	}
	if d.App == nil {
		return nil
	}
	for _, s := range sectionsOf(d) {
		if len(s.Rows) == 0 {
			fmt.Fprintf(out, "%s:  %s\n", s.Title, env.None)
			continue
		}
		fmt.Fprintf(out, "%s:\n", s.Title)
		t := env.NewTable(out, p)
		t.Indent = "  "
		if s.Header != nil {
			s.Rows = slices.Insert(s.Rows, 0, s.Header)
		}
		if err := t.Print(s.Rows...); err != nil {
			return err
		}
	}
	return nil
}

func sectionsOf(d view.Description) []view.Section {
	drifts := historyRows(d.App.Status.Drifts, d.Stored.Namespace, false, d.Now)
	sections := []view.Section{d.Conditions(), d.Objects(), {Title: "Drifts", Header: drifts[0], Rows: drifts[1:]}}
	for _, s := range []view.Section{d.Services(), d.Leaving()} {
		if len(s.Rows) > 0 {
			sections = append(sections, s)
		}
	}
	events := fmt.Sprintf("kubectl events --namespace %s --for configmap/%s", d.Stored.Namespace, d.Stored.Name)
	return append(sections, view.Section{Title: "Events", Rows: [][]env.Cell{env.TextCells(events)}})
}
