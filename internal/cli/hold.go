package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

func newHoldCommand(e *environment) *cobra.Command {
	var duration time.Duration
	var until string
	command := newWishCommand(e, cobra.Command{
		Use:   "hold (NAME... | -l SELECTOR | NAME KIND/NAME) [--for DURATION | --until TIME]",
		Short: "Pause repairs for some time, of Applications or of one object",
		Long: "Pause repairs for some time, of Applications or of one object. Drift is recorded, and repaired when the time is over. " +
			"Missing objects are still created. A hold of an Application replaces the former one, and the command warns if the new one ends earlier.\n\n" +
			"A hold on one object needs the right to write the object, and not the Application. It lasts for " + shortly(mostHold) +
			" at most, unless the agent has another --max-hold, and can be renewed once.",
		Example: "  kubectl krake hold web\n  kubectl krake hold web --until 08:00\n  kubectl krake hold web deployment/web --for 30m",
	}, func(now time.Time) (wisher, error) {
		at, err := untilOf(duration, until, now)
		return holdWisher(at, now), err
	})
	command.Flags().DurationVar(&duration, "for", time.Hour, "for how long")
	command.Flags().StringVar(&until, "until", "", "end of the hold, as 2026-01-02T15:04:05Z or, by the local clock, 15:04")
	command.MarkFlagsMutuallyExclusive("for", "until")
	e.target.addFlags(command.Flags())
	return command
}

func newResumeCommand(e *environment) *cobra.Command {
	command := newWishCommand(e, cobra.Command{
		Use:     "resume (NAME... | -l SELECTOR | NAME KIND/NAME)",
		Short:   "End holds, and modes other than enforce: what differs is repaired",
		Example: "  kubectl krake resume web\n  kubectl krake resume web deployment/web",
	}, func(now time.Time) (wisher, error) { return resumeWisher(now), nil })
	e.target.addFlags(command.Flags())
	return command
}

func newSuspendCommand(e *environment) *cobra.Command {
	return newWishCommand(e, cobra.Command{
		Use:     "suspend (NAME... | -l SELECTOR)",
		Short:   "Stop observing and repairing the objects of Applications until you resume them",
		Example: "  kubectl krake suspend web\n  kubectl krake suspend -l team=shop --dry-run=server",
	}, func(time.Time) (wisher, error) { return suspendWisher(), nil })
}

// newWishCommand completes a command that writes what a wisher decides.
func newWishCommand(e *environment, command cobra.Command, wisherAt func(now time.Time) (wisher, error)) *cobra.Command {
	w := wishing{environment: e}
	command.ValidArgsFunction = completeNames(e)
	command.RunE = func(command *cobra.Command, arguments []string) error {
		by, err := wisherAt(e.now())
		if err != nil {
			return err
		}
		return w.run(command.Context(), arguments, by)
	}
	command.Flags().StringVarP(&w.selector, "selector", "l", "", "choose Applications by labels, as team=shop")
	w.dryRun.addTo(&command, "nothing is sent")
	return &command
}

type wishing struct {
	*environment

	selector string
	dryRun   dryRunFlag
}

// run writes to each Application, and continues after a failure.
func (w *wishing) run(ctx context.Context, arguments []string, by wisher) error {
	if err := w.dryRun.check(); err != nil {
		return err
	}
	s, err := subjectOf(arguments, w.selector)
	if err != nil {
		return err
	}
	if s.object != "" {
		if by.object == nil {
			return fmt.Errorf("%s: there is no mode of a single object: hold it (kubectl krake hold %s %s)", s.object, s.applications[0], s.object)
		}
		return w.onObject(ctx, s, by)
	}
	names, err := w.names(ctx, s)
	if err != nil {
		return err
	}
	var failures []error
	for _, name := range names {
		failures = append(failures, w.onApplication(ctx, name, by))
	}
	return errors.Join(failures...)
}

func (w *wishing) names(ctx context.Context, s subject) ([]string, error) {
	if s.selector == "" {
		return s.applications, nil
	}
	_, namespace, err := w.applications()
	if err != nil {
		return nil, err
	}
	found, _, err := list(ctx, w.environment, namespace, metav1.ListOptions{LabelSelector: s.selector})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("namespace %s has no Application with %s: see kubectl krake get", namespace, s.selector)
	}
	names := make([]string, 0, len(found))
	for _, i := range found {
		names = append(names, i.stored.Name)
	}
	return names, nil
}

func (w *wishing) onApplication(ctx context.Context, name string, by wisher) error {
	client, namespace, err := w.applications()
	if err != nil {
		return err
	}
	return w.write("application."+application.Domain+"/"+name, func() (wish, metav1.Object, error) {
		i, err := get(ctx, w.environment, name)
		if err != nil {
			return wish{}, nil, err
		}
		if by.looks {
			i.holds = holdsOf(ctx, w.environment, i)
		}
		done, err := by.application(i)
		return done, i.stored, err
	}, func(patch []byte, options metav1.PatchOptions) error {
		_, err := client.ConfigMaps(namespace).Patch(ctx, name, types.MergePatchType, patch, options)
		return err
	})
}

func (w *wishing) onObject(ctx context.Context, s subject, by wisher) error {
	i, err := getReadable(ctx, w.environment, s.applications[0])
	if err != nil {
		return err
	}
	clients, err := w.objectsOf(i.app.Cluster)
	if err != nil {
		return err
	}
	kind, name, err := kindName(s.object)
	if err != nil {
		return err
	}
	mapping, err := clients.mappingOf(kind)
	if err != nil {
		return err
	}
	id, err := inInventory(i.app, mapping.GroupVersionKind.Kind, mapping.GroupVersionKind.Group, name)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{}
	return w.write(strings.ToLower(mapping.GroupVersionKind.GroupKind().String())+"/"+name, func() (done wish, read metav1.Object, err error) {
		object.Object, err = clients.read(ctx, mapping, id, i.app.Namespace)
		switch {
		case err != nil:
			return wish{}, nil, err
		case object.Object == nil:
			return wish{}, nil, fmt.Errorf("cluster %s has no such object now: see kubectl krake describe %s", i.app.Cluster, i.app.Name)
		}
		done, err = by.object(i.app, id, object.Object)
		return done, object, err
	}, func(patch []byte, options metav1.PatchOptions) error {
		// In no namespace if it has none.
		_, err := clients.Resource(mapping.Resource).Namespace(object.GetNamespace()).Patch(ctx, object.GetName(), types.MergePatchType, patch, options)
		return err
	})
}

// write writes to what it has read, and reads again if that has changed meanwhile: agents and
// other controllers may write at any time. It prints what was done, as kubectl annotate does.
func (w *wishing) write(shown string, decide func() (wish, metav1.Object, error), send func(patch []byte, options metav1.PatchOptions) error) error {
	options := metav1.PatchOptions{FieldManager: fieldManager, DryRun: w.dryRun.ofRequest()}
	var done wish
	err := retry.RetryOnConflict(retry.DefaultRetry, func() (err error) {
		var read metav1.Object
		if done, read, err = decide(); err != nil || len(done.annotations) == 0 || w.dryRun == dryRunClient {
			return err
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"resourceVersion": read.GetResourceVersion(), "annotations": done.annotations,
		}})
		if err != nil {
			return err
		}
		return send(patch, options)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", shown, err)
	}
	for _, warning := range done.warnings {
		fmt.Fprintf(w.ErrOut, "Warning: %s: %s\n", shown, warning)
	}
	fmt.Fprintln(w.Out, shown, done.done+w.dryRun.suffix())
	return nil
}

// inInventory returns the object from the agent's inventory.
func inInventory(app *application.Application, kind, group, name string) (manifest.ID, error) {
	var found []manifest.ID
	var others []string
	for _, id := range app.Inventory {
		gvk := id.GroupVersionKind()
		if gvk.Kind == kind && gvk.Group == group && id.Name == name {
			found = append(found, id)
		}
		others = append(others, resourceName(id))
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return manifest.ID{}, fmt.Errorf("the Application has %d objects %s/%s, in several namespaces: annotate the one that you mean with kubectl: %s",
			len(found), strings.ToLower(kind), name, application.HoldUntilAnnotation)
	case len(others) == 0:
		return manifest.ID{}, fmt.Errorf("the Application %s has no object yet: see kubectl krake describe %s", app.Name, app.Name)
	}
	return manifest.ID{}, fmt.Errorf("the Application %s has no object %s/%s: it has %s", app.Name, strings.ToLower(kind), name, strings.Join(others, ", "))
}
