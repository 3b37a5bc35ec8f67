package apps

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/krake-observer/krake-observer/internal/cli/env"
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
