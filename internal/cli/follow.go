package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// scope says which Applications a command is about.
type scope struct {
	all      bool // of all namespaces
	selector string
	// Of the user, once it is known; and those that are named, if any.
	namespace string
	names     []string
}

func (s *scope) addTo(command *cobra.Command) {
	command.Flags().BoolVarP(&s.all, "all-namespaces", "A", false, "those of all namespaces")
	command.Flags().StringVarP(&s.selector, "selector", "l", "", "those whose labels match, as in -l team=blue")
}

// resolve takes what the user names.
func (e *environment) resolve(s *scope, names []string) error {
	_, namespace, err := e.applications()
	switch {
	case err != nil:
		return err
	case s.all && len(names) > 0:
		return errors.New("a name belongs to one namespace: leave out -A, or the names")
	case s.selector != "" && len(names) > 0:
		return errors.New("names and a selector say different things: leave out -l, or the names")
	}
	if _, err := labels.Parse(s.selector); err != nil {
		return fmt.Errorf("--selector: %w: it is of the form team=blue,env!=test", err)
	}
	s.names = names
	if s.namespace = namespace; s.all {
		s.namespace = metav1.NamespaceAll
	}
	return nil
}

// has tells if an Application of the list is among those that are meant.
func (s scope) has(i item) bool { return len(s.names) == 0 || slices.Contains(s.names, i.stored.Name) }

// options are those of list and watch. Who names one needs rights on no other.
func (s scope) options() metav1.ListOptions {
	options := metav1.ListOptions{LabelSelector: s.selector}
	if len(s.names) == 1 {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, s.names[0]).String()
	}
	return options
}

// read gives the Applications that are meant, and of those that are named which are not
// there: both, an error and what was found.
func (e *environment) read(ctx context.Context, s scope) ([]item, error) {
	if len(s.names) == 0 {
		return e.list(ctx, s.namespace, s.selector)
	}
	var found []item
	var failures []error
	for _, name := range s.names {
		i, err := e.get(ctx, name)
		if failures = append(failures, err); err == nil {
			found = append(found, i)
		}
	}
	return found, errors.Join(failures...)
}

// change is what has become of Applications.
type change struct {
	// listed: the items are all that there are. Else it is one, which has come, has
	// changed, or is gone.
	listed, gone bool
	items        []item
}

// follow sends what there is, and then what becomes of it, until the context ends. A
// watch that has ended, as each does after some minutes, is followed by another list.
func (e *environment) follow(ctx context.Context, s scope, changes chan<- change) error {
	defer close(changes)
	for {
		items, version, err := e.listAt(ctx, s.namespace, s.options())
		if err == nil {
			items = slices.DeleteFunc(items, func(i item) bool { return !s.has(i) })
			send(ctx, changes, change{listed: true, items: items})
			err = e.watch(ctx, s, version, changes)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("watch the Applications: %w", err)
		}
		pause(ctx)
	}
}

// pause keeps watches that end at once from being asked for in a loop.
func pause(ctx context.Context) {
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func send(ctx context.Context, changes chan<- change, c change) {
	select {
	case changes <- c:
	case <-ctx.Done():
	}
}

// watch sends changes until the watch ends.
func (e *environment) watch(ctx context.Context, s scope, version string, changes chan<- change) error {
	client, _, err := e.applications()
	if err != nil {
		return err
	}
	options := s.options()
	options.ResourceVersion = version
	watcher, err := client.ConfigMaps(s.namespace).Watch(ctx, options)
	if err != nil {
		return unlessExpired(err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		switch object := event.Object.(type) {
		case *corev1.ConfigMap:
			if i := itemOf(object); s.has(i) {
				send(ctx, changes, change{gone: event.Type == watch.Deleted || !application.IsApplication(object), items: []item{i}})
			}
		default:
			return unlessExpired(apierrors.FromObject(object))
		}
	}
	return nil
}

// unlessExpired: what is too old to be watched from is listed anew.
func unlessExpired(err error) error {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return nil
	}
	return err
}

// key is the identity of an Application.
func (i item) key() string { return i.stored.Namespace + "/" + i.stored.Name }

// known are the Applications as they were seen last.
type known map[string]item

// take takes note of a change, and gives what has come or changed, and what is gone,
// both sorted.
func (k known) take(c change) (changed, gone []item) {
	present := map[string]bool{}
	for _, i := range c.items {
		former, known := k[i.key()]
		present[i.key()] = true
		switch {
		case c.gone && known:
			gone = append(gone, i)
			delete(k, i.key())
		case !c.gone && (!known || former.stored.ResourceVersion != i.stored.ResourceVersion):
			changed = append(changed, i)
			k[i.key()] = i
		}
	}
	for key, former := range k {
		if c.listed && !present[key] {
			gone = append(gone, former)
			delete(k, key)
		}
	}
	slices.SortFunc(gone, byKey)
	return changed, gone
}

// items gives all of them, sorted.
func (k known) items() []item {
	items := make([]item, 0, len(k))
	for _, i := range k {
		items = append(items, i)
	}
	slices.SortFunc(items, byKey)
	return items
}

func byKey(a, b item) int {
	return cmp.Or(cmp.Compare(a.stored.Namespace, b.stored.Namespace), cmp.Compare(a.stored.Name, b.stored.Name))
}
