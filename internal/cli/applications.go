package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// item is an Application as it is stored.
type item struct {
	stored *corev1.ConfigMap
	// app is what the ConfigMap says for its own cluster; nil if that cannot be read,
	// for the reason of err.
	app *application.Application
	err error
	// holds tells of objects that were looked at whether they are held.
	holds map[manifest.ID]bool
}

// admitted tells if the webhook has admitted it: what it has not, no agent sees.
func (i item) admitted() bool { return application.IsAdmitted(i.stored) }

func itemOf(cm *corev1.ConfigMap) item {
	app, err := application.Read(cm)
	return item{stored: cm, app: app, err: err}
}

// page is how many ConfigMaps are read at once: each may have 1 MiB.
const page = 100

// list reads the Applications of a namespace, of all if it is empty, sorted.
func (e *environment) list(ctx context.Context, namespace, selector string) ([]item, error) {
	found, _, err := e.listAt(ctx, namespace, metav1.ListOptions{LabelSelector: selector})
	return found, err
}

// listAt also gives the version of the list, to watch from. There is no label for those
// that were never admitted, so that all ConfigMaps are read.
func (e *environment) listAt(ctx context.Context, namespace string, options metav1.ListOptions) (found []item, version string, err error) {
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
		version = list.ResourceVersion
		if options.Continue = list.Continue; options.Continue == "" {
			break
		}
	}
	slices.SortFunc(found, func(a, b item) int {
		return cmp.Or(strings.Compare(a.stored.Namespace, b.stored.Namespace), strings.Compare(a.stored.Name, b.stored.Name))
	})
	return found, version, nil
}

// get reads one Application of the namespace that the user means.
func (e *environment) get(ctx context.Context, name string) (item, error) {
	client, namespace, err := e.applications()
	switch {
	case err != nil:
		return item{}, err
	case strings.Contains(name, "/"):
		return item{}, fmt.Errorf("%q is no name of an Application: name it without a kind, as %s", name, name[strings.LastIndex(name, "/")+1:])
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

func notThere(namespace, name string) error {
	return fmt.Errorf("there is no Application %s in namespace %s: name another namespace by -n, or see all by kubectl krake get -A", name, namespace)
}
