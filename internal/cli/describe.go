package cli

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
)

func newDescribeCommand(e *environment) *cobra.Command {
	var o scope
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
		ValidArgsFunction: completeNames(e),
		RunE: func(command *cobra.Command, names []string) error {
			ctx := command.Context()
			if err := o.resolve(e, names); err != nil {
				return err
			}
			items, failure := o.read(ctx, e)
			if failure != nil && len(items) == 0 {
				return failure
			}
			if len(items) == 0 {
				fmt.Fprintln(e.ErrOut, o.noneFound())
			}
			readHolds(ctx, e, items)
			beats, now := heartbeatsOf(ctx, e, items), e.now()
			for at, i := range items {
				if at > 0 {
					fmt.Fprint(e.Out, "\n\n")
				}
				d := description{item: i, beats: beats, now: now}
				if err := printDescription(e.Out, d, painterFor(e.Out)); err != nil {
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

// printDescription prints the tables one after the other, the first of them without a title.
func printDescription(out io.Writer, d description, p painter) error {
	if err := newTable(out, p).print(d.about()...); err != nil {
		return err
	}
	if d.app == nil {
		return nil
	}
	for _, s := range sectionsOf(d) {
		if len(s.rows) == 0 {
			fmt.Fprintf(out, "%s:  %s\n", s.title, none)
			continue
		}
		fmt.Fprintf(out, "%s:\n", s.title)
		t := newTable(out, p)
		t.indent = "  "
		if s.header != nil {
			s.rows = slices.Insert(s.rows, 0, s.header)
		}
		if err := t.print(s.rows...); err != nil {
			return err
		}
	}
	return nil
}

func sectionsOf(d description) []section {
	drifts := historyRows(d.app.Status.Drifts, d.stored.Namespace, false, d.now)
	sections := []section{d.conditions(), d.objects(), {"Drifts", drifts[0], drifts[1:]}}
	for _, s := range []section{d.services(), d.leaving()} {
		if len(s.rows) > 0 {
			sections = append(sections, s)
		}
	}
	events := fmt.Sprintf("kubectl events --namespace %s --for configmap/%s", d.stored.Namespace, d.stored.Name)
	return append(sections, section{title: "Events", rows: [][]cell{textCells(events)}})
}
