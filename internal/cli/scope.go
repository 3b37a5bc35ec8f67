package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
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
func (s *scope) resolve(e *environment, names []string) error {
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
func (s scope) read(ctx context.Context, e *environment) ([]item, error) {
	if len(s.names) == 0 {
		found, _, err := list(ctx, e, s.namespace, s.options())
		return found, err
	}
	var found []item
	var failures []error
	for _, name := range s.names {
		i, err := get(ctx, e, name)
		if failures = append(failures, err); err == nil {
			found = append(found, i)
		}
	}
	return found, errors.Join(failures...)
}
