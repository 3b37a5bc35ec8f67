package inspect

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/ptr"

	"github.com/krake-observer/krake-observer/internal/cli/apps"
	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

func newBlameCommand(e *env.Environment) *cobra.Command {
	var named string
	var output env.Output
	command := &cobra.Command{
		Use:               "blame NAME",
		ValidArgsFunction: apps.CompleteNames(e),
		Short:             "Show who has set each observed field of an Application's objects, and when",
		Long: `Show each observed field of an Application's objects: its value, the desired one, and
who has set it last, by the managedFields of the object. That is a hint and no proof. The
time is that of the manager's last write to any field of the object. The API server stores
no time for writes through the subresource scale. The removal of a field leaves no trace.

Fields that differ have a * in the column DRIFT. Values that the Application does not set,
and that were learned from the cluster, are marked as pinned. Values that are not learned
yet are marked as (to be pinned).

Values that may be secrets are shown as ***: see --show-private.`,
		Example: `  # Who has scaled it?
  kubectl krake blame web --object deployment/web`,
		Args: env.One("Application"),
		RunE: func(command *cobra.Command, names []string) error {
			blames, err := readBlames(command.Context(), e, names[0], named)
			if err != nil {
				return err
			}
			if output.IsDocument() {
				return env.PrintDocument(e.Out, output.Value, documentList[lens.Object]{documentVersion, "BlameList", "", blames})
			}
			return printBlames(e.Out, blames, output.Value == env.AsWide, e.Now())
		},
	}
	command.Flags().StringVar(&named, "object", "", "show one object only, as deployment/web")
	output.AddTo(command, env.AsTable, env.AsWide, env.AsJSON, env.AsYAML)
	e.AddPrivateTo(command)
	e.Target.AddFlags(command.Flags())
	return command
}

func readBlames(ctx context.Context, e *env.Environment, name, named string) ([]lens.Object, error) {
	app, expected, err := apps.GetExpected(ctx, e, name)
	if err != nil {
		return nil, err
	}
	if expected, err = apps.Chosen(expected, named); err != nil {
		return nil, err
	}
	objects, err := e.ObjectsOf(app.Cluster)
	if err != nil {
		return nil, err
	}
	blames := make([]lens.Object, 0, len(expected))
	for _, object := range expected {
		live, err := objects.Live(ctx, lens.Placed(app, object.ID))
		if err != nil {
			return nil, err
		}
		blames = append(blames, lens.Compare(app, object, live, e.ShowPrivate))
	}
	return blames, nil
}

func printBlames(out io.Writer, blames []lens.Object, wide bool, now time.Time) error {
	for i, b := range blames {
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintln(out, env.OneLine(b.String()))
		if b.Missing {
			fmt.Fprintln(out, "  there is no such object")
			continue
		}
		rows := [][]env.Cell{env.TextCells("DRIFT", "PATH", "VALUE", "DESIRED", "MANAGER", "OPERATION", "SINCE")}
		for _, field := range b.Fields {
			rows = append(rows, blameRow(field, wide, now))
		}
		for _, length := range b.Lengths {
			desired := map[schema.Kind]string{schema.TooShort: "more elements", schema.TooLong: "fewer elements", schema.Moved: "in another order"}[length.Problem]
			rows = append(rows, env.TextCells("*", length.Path, fmt.Sprintf("%d elements", length.Length), desired, "", "", ""))
		}
		if err := env.NewTable(out, env.PainterFor(out)).Print(rows...); err != nil {
			return err
		}
	}
	return nil
}

func blameRow(f lens.Field, wide bool, now time.Time) []env.Cell {
	mark, c, desired := "-", env.Plain, shortened(f.Desired, wide)
	switch {
	case f.Drift:
		mark, c = "*", env.Red
	case f.Unknown:
		desired = "(to be pinned)"
	}
	if f.Pinned {
		desired += " (pinned)"
	}
	manager := f.Manager
	if f.Subresource != "" {
		manager += " (" + f.Subresource + ")"
	}
	row := env.TextCells(mark, f.Path, shortened(f.Value, wide), desired, manager, f.Operation, env.Age(ptr.Deref(f.Since, time.Time{}), now))
	for i := range row {
		row[i].Colour = c
	}
	return row
}

// widest is the maximum length of a value in a table.
const widest = 40

func shortened(value any, wide bool) string {
	text := env.OneLine(lens.PlainText(value))
	if runes := []rune(text); len(runes) > widest && !wide {
		return string(runes[:widest-3]) + "..."
	}
	return text
}
