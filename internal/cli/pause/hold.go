// Package pause has the commands that stop repairs for some time, and continue them: hold, suspend and resume.
package pause

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

	"github.com/krake-observer/krake-observer/internal/cli/apps"
	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// Commands returns the commands of this package.
func Commands(e *env.Environment) []*cobra.Command {
	return []*cobra.Command{newHoldCommand(e), newResumeCommand(e), newSuspendCommand(e)}
}

func newHoldCommand(e *env.Environment) *cobra.Command {
	var duration time.Duration
	var until string
	command := newSettingCommand(e, cobra.Command{
		Use:   "hold (NAME... | -l SELECTOR | NAME KIND/NAME) [--for DURATION | --until TIME]",
		Short: "Pause repairs for some time, of Applications or of one object",
		Long: "Pause repairs for some time, of Applications or of one object. Drift is recorded, and repaired when the time is over. " +
			"Missing objects are still created. A hold of an Application replaces the former one, and the command warns if the new one ends earlier.\n\n" +
			"A hold on one object needs the right to write the object, and not the Application. It lasts for " + env.Shortly(apps.MostHold) +
			" at most, unless the agent has another --max-hold, and can be renewed once.",
		Example: "  kubectl krake hold web\n  kubectl krake hold web --until 08:00\n  kubectl krake hold web deployment/web --for 30m",
	}, func(now time.Time) (setting, error) {
		at, err := untilOf(duration, until, now)
		return holdSetting(at, now), err
	})
	command.Flags().DurationVar(&duration, "for", time.Hour, "for how long")
	command.Flags().StringVar(&until, "until", "", "end of the hold, as 2026-01-02T15:04:05Z or, by the local clock, 15:04")
	command.MarkFlagsMutuallyExclusive("for", "until")
	e.Target.AddFlags(command.Flags())
	return command
}

func newResumeCommand(e *env.Environment) *cobra.Command {
	command := newSettingCommand(e, cobra.Command{
		Use:     "resume (NAME... | -l SELECTOR | NAME KIND/NAME)",
		Short:   "End holds, and modes other than enforce: what differs is repaired",
		Example: "  kubectl krake resume web\n  kubectl krake resume web deployment/web",
	}, func(now time.Time) (setting, error) { return resumeSetting(now), nil })
	e.Target.AddFlags(command.Flags())
	return command
}

func newSuspendCommand(e *env.Environment) *cobra.Command {
	return newSettingCommand(e, cobra.Command{
		Use:     "suspend (NAME... | -l SELECTOR)",
		Short:   "Stop observing and repairing the objects of Applications until you resume them",
		Example: "  kubectl krake suspend web\n  kubectl krake suspend -l team=shop --dry-run=server",
	}, func(time.Time) (setting, error) { return suspendSetting(), nil })
}

// newSettingCommand completes a command that writes what a setting decides.
func newSettingCommand(e *env.Environment, command cobra.Command, settingAt func(now time.Time) (setting, error)) *cobra.Command {
	w := writer{Environment: e}
	command.ValidArgsFunction = apps.CompleteNames(e)
	command.RunE = func(command *cobra.Command, arguments []string) error {
		by, err := settingAt(e.Now())
		if err != nil {
			return err
		}
		return w.run(command.Context(), arguments, by)
	}
	command.Flags().StringVarP(&w.selector, "selector", "l", "", "choose Applications by labels, as team=shop")
	w.dryRun.AddTo(&command, "nothing is sent")
	return &command
}

type writer struct {
	*env.Environment

	selector string
	dryRun   env.DryRun
}

// run writes to each Application, and continues after a failure.
func (w *writer) run(ctx context.Context, arguments []string, by setting) error {
	if err := w.dryRun.Check(); err != nil {
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

func (w *writer) names(ctx context.Context, s subject) ([]string, error) {
	if s.selector == "" {
		return s.applications, nil
	}
	_, namespace, err := w.Applications()
	if err != nil {
		return nil, err
	}
	found, _, err := apps.List(ctx, w.Environment, namespace, metav1.ListOptions{LabelSelector: s.selector})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("namespace %s has no Application with %s: see kubectl krake get", namespace, s.selector)
	}
	names := make([]string, 0, len(found))
	for _, i := range found {
		names = append(names, i.Stored.Name)
	}
	return names, nil
}

func (w *writer) onApplication(ctx context.Context, name string, by setting) error {
	client, namespace, err := w.Applications()
	if err != nil {
		return err
	}
	return w.write("application."+application.Domain+"/"+name, func() (change, metav1.Object, error) {
		i, err := apps.Get(ctx, w.Environment, name)
		if err != nil {
			return change{}, nil, err
		}
		if by.looks {
			i.Holds = apps.HoldsOf(ctx, w.Environment, i)
		}
		done, err := by.application(i)
		return done, i.Stored, err
	}, func(patch []byte, options metav1.PatchOptions) error {
		_, err := client.ConfigMaps(namespace).Patch(ctx, name, types.MergePatchType, patch, options)
		return err
	})
}

func (w *writer) onObject(ctx context.Context, s subject, by setting) error {
	i, err := apps.GetReadable(ctx, w.Environment, s.applications[0])
	if err != nil {
		return err
	}
	clients, err := w.ObjectsOf(i.App.Cluster)
	if err != nil {
		return err
	}
	kind, name, err := env.KindName(s.object)
	if err != nil {
		return err
	}
	mapping, err := clients.MappingOf(kind)
	if err != nil {
		return err
	}
	id, err := inInventory(i.App, mapping.GroupVersionKind.Kind, mapping.GroupVersionKind.Group, name)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{}
	return w.write(strings.ToLower(mapping.GroupVersionKind.GroupKind().String())+"/"+name, func() (done change, read metav1.Object, err error) {
		object.Object, err = clients.Read(ctx, mapping, id, i.App.Namespace)
		switch {
		case err != nil:
			return change{}, nil, err
		case object.Object == nil:
			return change{}, nil, fmt.Errorf("cluster %s has no such object now: see kubectl krake describe %s", i.App.Cluster, i.App.Name)
		}
		done, err = by.object(i.App, id, object.Object)
		return done, object, err
	}, func(patch []byte, options metav1.PatchOptions) error {
		// In no namespace if it has none.
		_, err := clients.Resource(mapping.Resource).Namespace(object.GetNamespace()).Patch(ctx, object.GetName(), types.MergePatchType, patch, options)
		return err
	})
}

// write writes to what it has read, and reads again if that has changed meanwhile: agents and
// other controllers may write at any time. It prints what was done, as kubectl annotate does.
func (w *writer) write(shown string, decide func() (change, metav1.Object, error), send func(patch []byte, options metav1.PatchOptions) error) error {
	options := metav1.PatchOptions{FieldManager: env.FieldManager, DryRun: w.dryRun.OfRequest()}
	var done change
	err := retry.RetryOnConflict(retry.DefaultRetry, func() (err error) {
		var read metav1.Object
		if done, read, err = decide(); err != nil || len(done.annotations) == 0 || w.dryRun == env.DryRunClient {
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
	fmt.Fprintln(w.Out, shown, done.done+w.dryRun.Suffix())
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
		others = append(others, env.ResourceName(id))
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
