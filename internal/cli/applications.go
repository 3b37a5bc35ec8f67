package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// item is a stored Application.
type item struct {
	stored *corev1.ConfigMap
	// app is the Application of the ConfigMap, for its own cluster. It is nil if the ConfigMap
	// cannot be read, for the reason of err.
	app *application.Application
	err error
	// holds has the objects that were read, and whether they are held.
	holds map[manifest.ID]bool
}

func itemOf(cm *corev1.ConfigMap) item {
	app, err := application.Read(cm)
	return item{stored: cm, app: app, err: err}
}

// admitted reports whether the webhook has admitted it. If not, no agent sees it.
func (i item) admitted() bool { return application.IsAdmitted(i.stored) }

func (i item) isDeleted() bool { return i.stored.DeletionTimestamp != nil }

// key is the identity of an Application.
func (i item) key() string { return i.stored.Namespace + "/" + i.stored.Name }

func byKey(a, b item) int {
	return cmp.Or(cmp.Compare(a.stored.Namespace, b.stored.Namespace), cmp.Compare(a.stored.Name, b.stored.Name))
}

const (
	// page is how many ConfigMaps one request reads: each may have 1 MiB.
	page = 100
	// mostCompleted is the same for requests without their data.
	mostCompleted = 500
)

// list reads the Applications of a namespace, or of all if it is empty, sorted. The version is
// the version of the list, to watch from. It reads all ConfigMaps, because Applications that
// were never admitted have no label.
func list(ctx context.Context, e *environment, namespace string, options metav1.ListOptions) (found []item, version string, err error) {
	client, _, err := e.applications()
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
				found = append(found, itemOf(&list.Items[i]))
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			slices.SortFunc(found, byKey)
			return found, list.ResourceVersion, nil
		}
	}
}

// get reads an Application of the namespace that the flags select.
func get(ctx context.Context, e *environment, name string) (item, error) {
	_, namespace, err := e.applications()
	switch {
	case err != nil:
		return item{}, err
	case strings.Contains(name, "/"):
		return item{}, fmt.Errorf("%q is no name of an Application: name it without a kind, as %s", name, name[strings.LastIndex(name, "/")+1:])
	}
	return getIn(ctx, e, namespace, name)
}

// getIn reads an Application of a namespace.
func getIn(ctx context.Context, e *environment, namespace, name string) (item, error) {
	client, _, err := e.applications()
	if err != nil {
		return item{}, err
	}
	cm, err := client.ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return item{}, notThere(namespace, name)
	case err != nil:
		return item{}, err
	case !application.IsApplication(cm):
		return item{}, fmt.Errorf("ConfigMap %s/%s is no Application: it has no annotation %s", namespace, name, application.FormatAnnotation)
	}
	return itemOf(cm), nil
}

// getReadable is get, but returns an error for an Application whose ConfigMap cannot be read.
func getReadable(ctx context.Context, e *environment, name string) (item, error) {
	i, err := get(ctx, e, name)
	return i, cmp.Or(err, i.err)
}

func notThere(namespace, name string) error {
	return fmt.Errorf("there is no Application %s in namespace %s: name another namespace by -n, or see all by kubectl krake get -A", name, namespace)
}

// completeNames completes the names of Applications in the namespace that the flags select,
// without those that are typed already.
func completeNames(e *environment) cobra.CompletionFunc {
	return func(command *cobra.Command, typed []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		names, err := namesBeginning(command.Context(), e, typed, begun)
		if err != nil {
			cobra.CompErrorln(err.Error())
			return nil, cobra.ShellCompDirectiveError
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

func namesBeginning(ctx context.Context, e *environment, typed []string, begun string) (names []string, err error) {
	client, err := e.metadata()
	if err != nil {
		return nil, err
	}
	namespace, _, err := e.hub.ToRawKubeConfigLoader().Namespace()
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
