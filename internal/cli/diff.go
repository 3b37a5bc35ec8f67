package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/pkg/plan"
)

func newDiffCommand(e *environment) *cobra.Command {
	var name string
	command := &cobra.Command{
		Use:               "diff (NAME... | -f FILE)",
		ValidArgsFunction: e.completeNames,
		Short:             "Show what differs between Applications and their objects",
		Long: `Show what differs between Applications and their objects on the cluster, as a unified
diff of the observed fields, from what is to what is wanted. Lines that begin with # tell
what a diff does not show: whose an object is, which values would be pinned, what would
be deleted.

With -f, the Applications are those of a file, whether they are stored already or not:
what would be created, changed and pinned.

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
				return errors.New("what is to be compared is missing: name Applications, or a file by -f, and not both")
			case name != "":
				return e.diffFile(command.Context(), name)
			}
			return e.diffStored(command.Context(), names)
		},
	}
	command.Flags().StringVarP(&name, "filename", "f", "", "file with Applications to compare, - for the standard input")
	e.addPrivateTo(command)
	e.target.addFlags(command.Flags())
	return command
}

func (e *environment) diffStored(ctx context.Context, names []string) error {
	var found findings
	for _, name := range names {
		app, expected, err := e.getExpected(ctx, name)
		if err == nil {
			err = e.diff(ctx, app, expected, &found)
		}
		found.add(err)
	}
	return found.err()
}

func (e *environment) diffFile(ctx context.Context, name string) error {
	file, err := e.readFile(name)
	if err != nil {
		return err
	}
	drafts, _, err := file.applications()
	if err != nil {
		return err
	}
	var found findings
	for _, draft := range drafts {
		found.add(e.diffDraft(ctx, draft, &found))
	}
	return found.err()
}

func (e *environment) diffDraft(ctx context.Context, d draft, found *findings) error {
	if err := e.place(d); err != nil {
		return err
	}
	client, _, err := e.applications()
	if err != nil {
		return err
	}
	stored, err := client.ConfigMaps(d.cm.Namespace).Get(ctx, d.cm.Name, metav1.GetOptions{})
	var prepared mutate.Prepared
	switch {
	case apierrors.IsNotFound(err):
		prepared = mutate.PrepareForCreate(d.cm)
	case err != nil:
		return err
	default:
		d.cm = afterApply(d.cm, stored)
		prepared = mutate.PrepareForUpdate(d.cm, stored)
	}
	if err := e.tell(d, prepared); err != nil {
		return err
	}
	app, err := application.Read(d.cm)
	if err != nil {
		return err
	}
	expected, err := expect(app)
	if err != nil {
		return fmt.Errorf("the Application %s: %w", app.NamespacedName, err)
	}
	return e.diff(ctx, app, expected, found)
}

// afterApply gives the stored ConfigMap with what a file says of it, as after kubectl
// apply: annotations and labels that the file does not have stay.
func afterApply(cm, stored *corev1.ConfigMap) *corev1.ConfigMap {
	merged := stored.DeepCopy()
	merged.Annotations, merged.Labels = mergedInto(merged.Annotations, cm.Annotations), mergedInto(merged.Labels, cm.Labels)
	maps.DeleteFunc(merged.Data, func(key, _ string) bool { return application.IsSpecKey(key) })
	maps.DeleteFunc(merged.BinaryData, func(key string, _ []byte) bool { return application.IsSpecKey(key) })
	merged.Data, merged.BinaryData = mergedInto(merged.Data, cm.Data), mergedInto(merged.BinaryData, cm.BinaryData)
	merged.Immutable = cmp.Or(cm.Immutable, stored.Immutable)
	return merged
}

func mergedInto[V any](into, from map[string]V) map[string]V {
	if into == nil {
		return from
	}
	maps.Copy(into, from)
	return into
}

// diff prints what differs of one Application. What cannot be looked at does not keep
// the rest from being told.
func (e *environment) diff(ctx context.Context, app *application.Application, expected []plan.Expected, found *findings) error {
	if app.Deleted {
		found.different = true
		fmt.Fprintf(e.Out, "# Application %s: it is being deleted, and nothing is kept any more as it says\n", app.NamespacedName)
		return nil
	}
	objects, err := e.objectsOf(app.Cluster)
	if err != nil {
		return err
	}
	for _, object := range expected {
		live, err := objects.live(ctx, placed(app, object.ID))
		if err == nil {
			err = e.diffObject(app, object, live, found)
		}
		found.add(err)
	}
	for _, id := range leaving(app, expected) {
		live, err := objects.live(ctx, id)
		found.add(err)
		if application.Marks(app.NamespacedName, app.UID, id).Prove(live) {
			found.different = true
			fmt.Fprintln(e.Out, oneLine("# "+id.String()+": it left the Application, and "+becomes(app, id)))
		}
	}
	return nil
}

// becomes tells what is done to an object that left its Application.
func becomes(app *application.Application, id manifest.ID) string {
	if app.Deleted && app.Wishes.DeletionPolicy == application.Orphan || slices.Contains(app.Adopted, id) && !app.Wishes.DeletesAdopted {
		return "would be left where it is, without the marks of the Application"
	}
	return "would be deleted"
}

func (e *environment) diffObject(app *application.Application, expected plan.Expected, live map[string]any, found *findings) error {
	comparison, err := compare(app, expected, live, e.showPrivate)
	if err != nil || !comparison.differs() {
		return err
	}
	found.different = true
	_, err = fmt.Fprint(e.Out, painterFor(e.Out).paintDiff(comparison.String()))
	return err
}

// paintDiff colours the lines of a unified diff.
func (p painter) paintDiff(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line, end, _ := strings.Cut(line, "\n")
		b.WriteString(p.paint(colourOf(line), line) + "\n" + end)
	}
	return b.String()
}

func colourOf(line string) colour {
	switch {
	case strings.HasPrefix(line, "-"):
		return red
	case strings.HasPrefix(line, "+"):
		return green
	case strings.HasPrefix(line, "#"):
		return yellow
	}
	return plain
}

// findings are what a command that compares has found, and what it could not look at.
type findings struct {
	different bool
	failures  []error
}

func (f *findings) add(err error) {
	if err != nil {
		f.failures = append(f.failures, err)
	}
}

func (f *findings) err() error {
	switch {
	case len(f.failures) > 0:
		return errors.Join(f.failures...)
	case f.different:
		return errDifferent
	}
	return nil
}
