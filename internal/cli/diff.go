package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
)

func newDiffCommand(e *environment) *cobra.Command {
	var name string
	d := differ{environment: e}
	command := &cobra.Command{
		Use:               "diff (NAME... | -f FILE)",
		ValidArgsFunction: e.completeNames,
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
				app, expected, err := e.getExpected(command.Context(), name)
				if err == nil {
					err = d.application(command.Context(), app, expected)
				}
				d.add(err)
			}
			return d.err()
		},
	}
	command.Flags().StringVarP(&name, "filename", "f", "", "file with Applications to compare, - for the standard input")
	e.addPrivateTo(command)
	e.target.addFlags(command.Flags())
	return command
}

// differ prints differences. It collects failures, and continues after each.
type differ struct {
	*environment

	found    bool
	failures []error
}

func (d *differ) add(err error) { d.failures = append(d.failures, err) }

func (d *differ) err() error {
	if err := errors.Join(d.failures...); err != nil || !d.found {
		return err
	}
	return errDifferent
}

func (d *differ) file(ctx context.Context, name string) error {
	file, err := readFile(d.In, name)
	if err != nil {
		return err
	}
	drafts, _, err := file.applications()
	if err != nil {
		return err
	}
	for _, draft := range drafts {
		d.add(d.draft(ctx, draft))
	}
	return d.err()
}

func (d *differ) draft(ctx context.Context, draft draft) error {
	app, expected, err := d.prepare(ctx, draft)
	if err != nil {
		return err
	}
	return d.application(ctx, app, expected)
}

// prepare returns a draft as it would be admitted, and prints what admission says.
func (d *differ) prepare(ctx context.Context, draft draft) (*application.Application, []plan.Expected, error) {
	if err := draft.place(d.hub); err != nil {
		return nil, nil, err
	}
	client, _, err := d.applications()
	if err != nil {
		return nil, nil, err
	}
	stored, err := client.ConfigMaps(draft.cm.Namespace).Get(ctx, draft.cm.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		stored = nil
	case err != nil:
		return nil, nil, err
	default:
		draft.cm = afterApply(draft.cm, stored)
	}
	if err := d.admit(ctx, draft, stored); err != nil {
		return nil, nil, err
	}
	app, err := application.Read(draft.cm)
	if err != nil {
		return nil, nil, err
	}
	expected, err := expect(app, typesOn(d.objectsOf, app.Cluster))
	return app, expected, err
}

// admit changes a draft as the webhook does, and prints what admission says. Stored is nil for a new
// Application.
func (d *differ) admit(ctx context.Context, draft draft, stored *corev1.ConfigMap) error {
	sent := draft.cm.DeepCopy() // without what the webhook adds
	var prepared mutate.Prepared
	if stored == nil {
		prepared = mutate.PrepareForCreate(ctx.Err, draft.cm)
	} else {
		prepared = mutate.PrepareForUpdate(ctx.Err, draft.cm, stored, application.IsAdmitted(stored))
	}
	if err := draft.tell(d.ErrOut, prepared); err != nil {
		return err
	}
	return d.ask(ctx, draft, sent, stored, prepared.Warnings)
}

// ask asks the webhook by a dry run, and prints what only the webhook knows: kinds without a
// namespace, and what user or agent may not do. A user who may not write the Application may still
// compare it.
func (d *differ) ask(ctx context.Context, draft draft, sent, stored *corev1.ConfigMap, warned []string) error {
	j := judgement{warned: warned}
	client, err := d.hearing(draft.places, &j)
	if err != nil {
		return err
	}
	dry := []string{metav1.DryRunAll}
	if stored == nil {
		_, err = client.ConfigMaps(sent.Namespace).Create(ctx, sent, metav1.CreateOptions{DryRun: dry, FieldManager: fieldManager})
	} else {
		var change []byte
		if change, err = changeOf(stored, sent); err != nil {
			return err
		}
		_, err = client.ConfigMaps(sent.Namespace).Patch(ctx, sent.Name, types.MergePatchType, change, metav1.PatchOptions{DryRun: dry, FieldManager: fieldManager})
	}
	if err != nil && !apierrors.IsInvalid(err) {
		fmt.Fprintln(&j.said, oneLine("not admitted now: "+err.Error()))
		err = nil
	}
	return errors.Join(j.flush(d.ErrOut), err)
}

// changeOf returns the merge patch from stored to sent. An update would conflict with an agent that
// writes the status in the meantime.
func changeOf(stored, sent *corev1.ConfigMap) ([]byte, error) {
	from, err := json.Marshal(stored)
	if err != nil {
		return nil, err
	}
	to, err := json.Marshal(sent)
	if err != nil {
		return nil, err
	}
	return jsonpatch.CreateMergePatch(from, to)
}

// afterApply returns the stored ConfigMap as kubectl apply leaves it with that of a file:
// annotations and labels that the file does not have stay.
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

func (d *differ) application(ctx context.Context, app *application.Application, expected []plan.Expected) error {
	if app.Deleted {
		d.found = true
		fmt.Fprintf(d.Out, "# Application %s: it is being deleted, and its objects are no longer repaired\n", app.NamespacedName)
		return nil
	}
	objects, err := d.objectsOf(app.Cluster)
	if err != nil {
		return err
	}
	for _, object := range expected {
		live, err := objects.live(ctx, lens.Placed(app, object.ID))
		if err == nil && (live != nil || !hasEnded(app, object)) {
			err = d.object(app, object, live)
		}
		d.add(err)
	}
	for _, id := range leaving(app, expected) {
		live, err := objects.live(ctx, id)
		d.add(err)
		if application.Marks(app.NamespacedName, app.UID, id).Prove(live) {
			d.found = true
			fmt.Fprintln(d.Out, oneLine("# "+id.String()+": it left the Application, and "+becomes(app, id)))
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

func becomes(app *application.Application, id manifest.ID) string {
	if plan.IsReleased(app, id) {
		return "would be left where it is, without the marks of the Application"
	}
	return "would be deleted"
}

func (d *differ) object(app *application.Application, expected plan.Expected, live map[string]any) error {
	comparison, err := compare(app, expected, live, d.showPrivate)
	if err != nil || !comparison.differs() {
		return err
	}
	d.found = true
	p := painterFor(d.Out)
	for line := range strings.Lines(comparison.String()) {
		line = strings.TrimSuffix(line, "\n")
		if _, err := fmt.Fprintln(d.Out, p.paint(colourOf(line), line)); err != nil {
			return err
		}
	}
	return nil
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
