package apps

import (
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

	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/pkg/application"
)

// Scope selects the Applications of a command.
type Scope struct {
	All      bool // of all namespaces
	selector string
	// The user's namespace, once it is known, and the names of Applications, if any.
	Namespace string
	Names     []string
}

// AddTo adds the flags that select Applications.
func (s *Scope) AddTo(command *cobra.Command) {
	command.Flags().BoolVarP(&s.All, "all-namespaces", "A", false, "those of all namespaces")
	command.Flags().StringVarP(&s.selector, "selector", "l", "", "those whose labels match, as in -l team=blue")
}

// Resolve completes the scope by the names of the command line and the namespace.
func (s *Scope) Resolve(e *env.Environment, names []string) error {
	_, namespace, err := e.Applications()
	switch {
	case err != nil:
		return err
	case s.All && len(names) > 0:
		return errors.New("a name belongs to one namespace: leave out -A, or the names")
	case s.selector != "" && len(names) > 0:
		return errors.New("names and a selector say different things: leave out -l, or the names")
	}
	if _, err := labels.Parse(s.selector); err != nil {
		return fmt.Errorf("--selector: %w: it is of the form team=blue,env!=test", err)
	}
	s.Names = names
	if s.Namespace = namespace; s.All {
		s.Namespace = metav1.NamespaceAll
	}
	return nil
}

// has reports whether an Application of the list is in the scope.
func (s Scope) has(i Item) bool { return len(s.Names) == 0 || slices.Contains(s.Names, i.Stored.Name) }

// options returns those of list and watch. A user who names one Application needs rights only on it.
func (s Scope) options() metav1.ListOptions {
	options := metav1.ListOptions{LabelSelector: s.selector}
	if len(s.Names) == 1 {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, s.Names[0]).String()
	}
	return options
}

// NoneFound has the text that kubectl uses.
func (s Scope) NoneFound() string {
	text := "No Applications found"
	if s.selector != "" {
		text += " whose labels match"
	}
	if s.Namespace == metav1.NamespaceAll {
		return text
	}
	return text + " in " + s.Namespace + " namespace."
}

// Read returns the Applications of the scope. If some named ones do not exist, it returns the
// others and an error.
func (s Scope) Read(ctx context.Context, e *env.Environment) ([]Item, error) {
	if len(s.Names) == 0 {
		found, _, err := List(ctx, e, s.Namespace, s.options())
		return found, err
	}
	var found []Item
	var failures []error
	for _, name := range s.Names {
		i, err := Get(ctx, e, name)
		if failures = append(failures, err); err == nil {
			found = append(found, i)
		}
	}
	return found, errors.Join(failures...)
}

// Change is what a watch of Applications reports.
type Change struct {
	// Listed: the items are all Applications. If not, they are one Application that is new,
	// has changed, or is gone.
	Listed, Gone bool
	Items        []Item
}

// Follow sends all Applications, and then each change, until the context ends. Each watch ends after some
// minutes, and another one continues from there. If that is too late, another list follows.
func Follow(ctx context.Context, e *env.Environment, s Scope, changes chan<- Change) error {
	defer close(changes)
	version := ""
	for {
		var err error
		if version == "" {
			var items []Item
			if items, version, err = List(ctx, e, s.Namespace, s.options()); err == nil {
				items = slices.DeleteFunc(items, func(i Item) bool { return !s.has(i) })
				send(ctx, changes, Change{Listed: true, Items: items})
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

func send(ctx context.Context, changes chan<- Change, c Change) {
	select {
	case changes <- c:
	case <-ctx.Done():
	}
}

// watchFrom sends changes until the watch ends. It returns the version to continue from, which is empty if
// only a list can tell what has changed.
func watchFrom(ctx context.Context, e *env.Environment, s Scope, version string, changes chan<- Change) (string, error) {
	client, _, err := e.Applications()
	if err != nil {
		return "", err
	}
	options := s.options()
	options.ResourceVersion, options.AllowWatchBookmarks = version, true
	watcher, err := client.ConfigMaps(s.Namespace).Watch(ctx, options)
	if err != nil {
		return "", UnlessExpired(err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		cm, ok := event.Object.(*corev1.ConfigMap)
		if !ok {
			return "", UnlessExpired(apierrors.FromObject(event.Object))
		}
		version = cm.ResourceVersion
		if i := ItemOf(cm); event.Type != watch.Bookmark && s.has(i) {
			send(ctx, changes, Change{Gone: event.Type == watch.Deleted || !application.IsApplication(cm), Items: []Item{i}})
		}
	}
	return version, nil
}

// UnlessExpired returns no error for a version that is too old for a watch: another list follows.
func UnlessExpired(err error) error {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return nil
	}
	return err
}
