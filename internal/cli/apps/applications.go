// Package apps reads the Applications that are stored on a hub: their ConfigMaps, whether their agents are heard, the holds
// of their objects, the objects that they desire, and changes of all that.
package apps

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/internal/pacing"
	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// Item is a stored Application.
type Item struct {
	Stored *corev1.ConfigMap
	// App is the Application of the ConfigMap, for its own cluster. It is nil if the ConfigMap
	// cannot be read, for the reason of err.
	App *application.Application
	Err error
	// Holds has the objects that were read, and whether they are held.
	Holds map[manifest.ID]bool
}

// ItemOf reads the Application of a ConfigMap.
func ItemOf(cm *corev1.ConfigMap) Item {
	app, err := application.Read(cm)
	return Item{Stored: cm, App: app, Err: err}
}

// IsAdmitted reports whether the webhook has admitted it. If not, no agent sees it.
func (i Item) IsAdmitted() bool { return application.IsAdmitted(i.Stored) }

// IsDeleted reports whether its deletion was requested.
func (i Item) IsDeleted() bool { return i.Stored.DeletionTimestamp != nil }

// Key is the identity of an Application.
func (i Item) Key() string { return i.Stored.Namespace + "/" + i.Stored.Name }

// ByKey orders by namespace and name.
func ByKey(a, b Item) int {
	return cmp.Or(cmp.Compare(a.Stored.Namespace, b.Stored.Namespace), cmp.Compare(a.Stored.Name, b.Stored.Name))
}

const (
	// page is how many ConfigMaps one request reads: each may have 1 MiB.
	page = 100
	// mostCompleted is the same for requests without their data.
	mostCompleted = 500
)

// List reads the Applications of a namespace, or of all if it is empty, sorted. The version is
// the version of the list, to watch from. It reads all ConfigMaps, because Applications that
// were never admitted have no label.
func List(ctx context.Context, e *env.Environment, namespace string, options metav1.ListOptions) (found []Item, version string, err error) {
	client, _, err := e.Applications()
	if err != nil {
		return nil, "", err
	}
	options.Limit = page
	for {
		list, err := client.ConfigMaps(namespace).List(ctx, options)
		if err != nil {
			return nil, "", err
		}
		for i := range list.Items {
			if application.IsApplication(&list.Items[i]) {
				found = append(found, ItemOf(&list.Items[i]))
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			slices.SortFunc(found, ByKey)
			return found, list.ResourceVersion, nil
		}
	}
}

// Get reads an Application of the namespace that the flags select.
func Get(ctx context.Context, e *env.Environment, name string) (Item, error) {
	_, namespace, err := e.Applications()
	switch {
	case err != nil:
		return Item{}, err
	case strings.Contains(name, "/"):
		return Item{}, fmt.Errorf("%q is no name of an Application: name it without a kind, as %s", name, name[strings.LastIndex(name, "/")+1:])
	}
	return GetIn(ctx, e, namespace, name)
}

// GetIn reads an Application of a namespace.
func GetIn(ctx context.Context, e *env.Environment, namespace, name string) (Item, error) {
	client, _, err := e.Applications()
	if err != nil {
		return Item{}, err
	}
	cm, err := client.ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return Item{}, NotFound(namespace, name)
	case err != nil:
		return Item{}, err
	case !application.IsApplication(cm):
		return Item{}, fmt.Errorf("ConfigMap %s/%s is no Application: it has no annotation %s", namespace, name, application.FormatAnnotation)
	}
	return ItemOf(cm), nil
}

// GetReadable is get, but returns an error for an Application whose ConfigMap cannot be read.
func GetReadable(ctx context.Context, e *env.Environment, name string) (Item, error) {
	i, err := Get(ctx, e, name)
	return i, cmp.Or(err, i.Err)
}

// NotFound is the error for a name without an Application.
func NotFound(namespace, name string) error {
	return fmt.Errorf("there is no Application %s in namespace %s: name another namespace by -n, or see all by kubectl krake get -A", name, namespace)
}

// CompleteNames completes the names of Applications in the namespace that the flags select,
// without those that are typed already.
func CompleteNames(e *env.Environment) cobra.CompletionFunc {
	return func(command *cobra.Command, typed []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		names, err := namesBeginning(command.Context(), e, typed, begun)
		if err != nil {
			cobra.CompErrorln(err.Error())
			return nil, cobra.ShellCompDirectiveError
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

func namesBeginning(ctx context.Context, e *env.Environment, typed []string, begun string) (names []string, err error) {
	client, err := e.Metadata()
	if err != nil {
		return nil, err
	}
	namespace, _, err := e.Hub.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	options := metav1.ListOptions{Limit: mostCompleted}
	for {
		list, err := client.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(namespace).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			found := &list.Items[i]
			if _, ok := found.Annotations[application.FormatAnnotation]; ok && strings.HasPrefix(found.Name, begun) && !slices.Contains(typed, found.Name) {
				names = append(names, found.Name)
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return names, nil
		}
	}
}

// MostHold is how long an agent holds an object without --max-hold. This program does not know
// that flag of the agent.
const MostHold = 4 * time.Hour

// ReadHolds finds the holds of a status that are in force. The status has them until they
// expire, even if they were removed, and only the object has the annotation. Objects that
// the user may not read stay undecided.
func ReadHolds(ctx context.Context, e *env.Environment, items []Item) {
	for i := range items {
		items[i].Holds = HoldsOf(ctx, e, items[i])
	}
}

// HoldsOf returns the objects that could be read, with whether they are held.
func HoldsOf(ctx context.Context, e *env.Environment, i Item) map[manifest.ID]bool {
	found := map[manifest.ID]bool{}
	if i.App == nil {
		return found
	}
	now := e.Now()
	for _, object := range i.App.Status.Objects {
		if !mayBeHeld(i.App, object, now) {
			continue
		}
		clients, err := e.ObjectsOf(i.App.Cluster)
		if err != nil {
			return found // nothing of this cluster can be read
		}
		if live, err := clients.Live(ctx, lens.Placed(i.App, object.ID)); err == nil {
			settings := i.App.Settings
			settings.HoldUntil = time.Time{} // that of the whole Application
			until, _ := pacing.HeldUntil(settings, object.Hold, env.AnnotationsOf(live)[application.HoldUntilAnnotation], MostHold, now)
			found[object.ID] = until.After(now)
		}
	}
	return found
}

// mayBeHeld reports whether a hold of the status counts, provided its annotation still exists.
func mayBeHeld(app *application.Application, object application.ObjectStatus, now time.Time) bool {
	return object.Hold != nil && object.Hold.Until.After(now) && !app.Settings.DenyHolds
}

// HeldUntil returns until when an object is held by its own annotation, and whether that is
// certain: by the object, or by its agent, which does not repair it.
func (i Item) HeldUntil(object application.ObjectStatus, now time.Time) (until time.Time, sure bool) {
	holds, looked := i.Holds[object.ID]
	if !mayBeHeld(i.App, object, now) || looked && !holds {
		return time.Time{}, true
	}
	return object.Hold.Until.Time, looked || object.Reason == status.Held
}
