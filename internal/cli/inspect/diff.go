package inspect

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/krake-observer/krake-observer/internal/cli/apps"
	"github.com/krake-observer/krake-observer/internal/cli/draft"
	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/cli/view"
	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/pkg/application"
)

func newDiffCommand(e *env.Environment) *cobra.Command {
	var name string
	d := differ{Environment: e}
	command := &cobra.Command{
		Use:               "diff (NAME... | -f FILE)",
		ValidArgsFunction: apps.CompleteNames(e),
		Short:             "Show what differs between Applications and their objects",
		Long: `Show what differs between Applications and their objects on the cluster, as a unified
diff of the observed fields, from the live to the desired values. Lines that begin with #
show what a diff cannot: the owner of an object, which values would be pinned, and what
would be deleted.

With -f, the Applications are those of a file, whether they are stored already or not:
what would be created, changed and pinned. The command asks the webhook with a dry run,
and prints its warnings.

Values that may be secrets are shown as ***, and as *** (before) and *** (after) where
they differ: see --show-private.

The exit status is 0 without a difference, 1 with one, and 2 if anything went wrong.`,
		Example: `  # What has drifted
  kubectl krake diff web

  # What an edited file would change
  kubectl krake diff -f web.yaml`,
		RunE: func(command *cobra.Command, names []string) error {
			switch {
			case (name == "") == (len(names) == 0):
				return errors.New("nothing to compare: name Applications, or a file by -f, and not both")
			case name != "":
				return d.file(command.Context(), name)
			}
			for _, name := range names {
				app, expected, err := apps.GetExpected(command.Context(), e, name)
				if err == nil {
					err = d.application(command.Context(), app, expected)
				}
				d.add(err)
			}
			return d.err()
		},
	}
	command.Flags().StringVarP(&name, "filename", "f", "", "file with Applications to compare, - for the standard input")
	e.AddPrivateTo(command)
	e.Target.AddFlags(command.Flags())
	return command
}

// differ prints differences. It collects failures, and continues after each.
type differ struct {
	*env.Environment

	found    bool
	failures []error
}

func (d *differ) add(err error) { d.failures = append(d.failures, err) }

func (d *differ) err() error {
	if err := errors.Join(d.failures...); err != nil || !d.found {
		return err
	}
	return env.ErrDifferent
}

func (d *differ) file(ctx context.Context, name string) error {
	file, err := draft.ReadFile(d.In, name)
	if err != nil {
		return err
	}
	drafts, _, err := file.Applications()
	if err != nil {
		return err
	}
	for _, draft := range drafts {
		d.add(d.draft(ctx, draft))
	}
	return d.err()
}

func (d *differ) draft(ctx context.Context, one draft.Draft) error {
	app, expected, err := draft.Prepare(ctx, d.Environment, one)
	if err != nil {
		return err
	}
	return d.application(ctx, app, expected)
}

func (d *differ) application(ctx context.Context, app *application.Application, expected []plan.Expected) error {
	if app.Deleted {
		d.found = true
		fmt.Fprintf(d.Out, "# Application %s: it is being deleted, and its objects are no longer repaired\n", app.NamespacedName)
		return nil
	}
	objects, err := d.ObjectsOf(app.Cluster)
	if err != nil {
		return err
	}
	for _, object := range expected {
		live, err := objects.Live(ctx, lens.Placed(app, object.ID))
		if err == nil && (live != nil || !hasEnded(app, object)) {
			err = d.object(app, object, live)
		}
		d.add(err)
	}
	for _, id := range apps.Leaving(app, expected) {
		live, err := objects.Live(ctx, id)
		d.add(err)
		if application.Marks(app.NamespacedName, app.UID, id).Prove(live) {
			d.found = true
			fmt.Fprintln(d.Out, env.OneLine("# "+id.String()+": it left the Application, and "+apps.Becomes(app, id)))
		}
	}
	return nil
}

// hasEnded reports whether the agent does not create a missing object again, because it had finished.
func hasEnded(app *application.Application, expected plan.Expected) bool {
	known, _ := app.Status.Object(lens.Placed(app, expected.ID))
	digest, err := plan.DigestOf(expected.Manifest)
	return err == nil && known.Ended != nil && known.Ended.Manifest == digest
}

func (d *differ) object(app *application.Application, expected plan.Expected, live map[string]any) error {
	comparison, err := view.Compare(app, expected, live, d.ShowPrivate)
	if err != nil || !comparison.Differs() {
		return err
	}
	d.found = true
	p := env.PainterFor(d.Out)
	for line := range strings.Lines(comparison.String()) {
		line = strings.TrimSuffix(line, "\n")
		if _, err := fmt.Fprintln(d.Out, p.Paint(colourOf(line), line)); err != nil {
			return err
		}
	}
	return nil
}

func colourOf(line string) env.Colour {
	switch {
	case strings.HasPrefix(line, "-"):
		return env.Red
	case strings.HasPrefix(line, "+"):
		return env.Green
	case strings.HasPrefix(line, "#"):
		return env.Yellow
	}
	return env.Plain
}
