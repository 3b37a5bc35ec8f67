package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// scope selects the Applications of a command.
type scope struct {
	all      bool // of all namespaces
	selector string
	// The user's namespace, once it is known, and the names of Applications, if any.
	namespace string
	names     []string
}

func (s *scope) addTo(command *cobra.Command) {
	command.Flags().BoolVarP(&s.all, "all-namespaces", "A", false, "those of all namespaces")
	command.Flags().StringVarP(&s.selector, "selector", "l", "", "those whose labels match, as in -l team=blue")
}

// resolve completes the scope by the names of the command line and the namespace.
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

// has reports whether an Application of the list is in the scope.
func (s scope) has(i item) bool { return len(s.names) == 0 || slices.Contains(s.names, i.stored.Name) }

// options returns those of list and watch. A user who names one Application needs rights only on it.
func (s scope) options() metav1.ListOptions {
	options := metav1.ListOptions{LabelSelector: s.selector}
	if len(s.names) == 1 {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, s.names[0]).String()
	}
	return options
}

// noneFound has the text that kubectl uses.
func (s scope) noneFound() string {
	text := "No Applications found"
	if s.selector != "" {
		text += " whose labels match"
	}
	if s.namespace == metav1.NamespaceAll {
		return text
	}
	return text + " in " + s.namespace + " namespace."
}

// read returns the Applications of the scope. If some named ones do not exist, it returns the
// others and an error.
func (e *environment) read(ctx context.Context, s scope) ([]item, error) {
	if len(s.names) == 0 {
		found, _, err := e.list(ctx, s.namespace, s.options())
		return found, err
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

type change struct {
	// listed: the items are all Applications. If not, they are one Application that is new,
	// has changed, or is gone.
	listed, gone bool
	items        []item
}

// following calls changed with all Applications, and then with each change. It calls looked
// at each [beatsInterval]. It ends when the context ends or a call fails.
func (e *environment) following(ctx context.Context, s scope, changed func(context.Context, change) error, looked func(context.Context) error) error {
	ticker := time.NewTicker(beatsInterval)
	defer ticker.Stop()
	group, ctx := errgroup.WithContext(ctx)
	changes := make(chan change)
	group.Go(func() error { return follow(ctx, e, s, changes) })
	group.Go(func() error {
		for {
			var err error
			select {
			case c, ok := <-changes:
				if !ok {
					return nil
				}
				err = changed(ctx, c)
			case <-ticker.C:
				err = looked(ctx)
			}
			if err != nil {
				return err
			}
		}
	})
	return group.Wait()
}

// follow sends all Applications, and then each change, until the context ends. Each watch ends after some
// minutes, and another one continues from there. If that is too late, another list follows.
func follow(ctx context.Context, e *environment, s scope, changes chan<- change) error {
	defer close(changes)
	version := ""
	for {
		var err error
		if version == "" {
			var items []item
			if items, version, err = e.list(ctx, s.namespace, s.options()); err == nil {
				items = slices.DeleteFunc(items, func(i item) bool { return !s.has(i) })
				send(ctx, changes, change{listed: true, items: items})
			}
		}
		if err == nil {
			version, err = watchFrom(ctx, e, s, version, changes)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("watch the Applications: %w", err)
		}
		select { // a pause, in case each watch ends at once
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

func send(ctx context.Context, changes chan<- change, c change) {
	select {
	case changes <- c:
	case <-ctx.Done():
	}
}

// watchFrom sends changes until the watch ends. It returns the version to continue from, which is empty if
// only a list can tell what has changed.
func watchFrom(ctx context.Context, e *environment, s scope, version string, changes chan<- change) (string, error) {
	client, _, err := e.applications()
	if err != nil {
		return "", err
	}
	options := s.options()
	options.ResourceVersion, options.AllowWatchBookmarks = version, true
	watcher, err := client.ConfigMaps(s.namespace).Watch(ctx, options)
	if err != nil {
		return "", unlessExpired(err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		cm, ok := event.Object.(*corev1.ConfigMap)
		if !ok {
			return "", unlessExpired(apierrors.FromObject(event.Object))
		}
		version = cm.ResourceVersion
		if i := itemOf(cm); event.Type != watch.Bookmark && s.has(i) {
			send(ctx, changes, change{gone: event.Type == watch.Deleted || !application.IsApplication(cm), items: []item{i}})
		}
	}
	return version, nil
}

// unlessExpired returns no error for a version that is too old for a watch: another list follows.
func unlessExpired(err error) error {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return nil
	}
	return err
}

// known has the last seen version of the Applications, by their keys.
type known map[string]item

// take records a change. It returns the new and changed Applications, and those that are gone,
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

// items returns all of them, sorted.
func (k known) items() []item { return slices.SortedFunc(maps.Values(k), byKey) }
