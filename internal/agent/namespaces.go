package agent

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/krake-observer/krake-observer/internal/options"
)

// Namespaces are the namespaces of Applications on the hub, and of their objects on the target.
type Namespaces struct {
	// Hub are those with the Applications, Target those with the objects. An empty list means all.
	Hub, Target []string
	// Map has an entry hub=target for each namespace of the hub whose Applications
	// have their objects in a namespace of another name.
	Map []string
}

func (n *Namespaces) addFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&n.Hub, "hub-namespaces", nil, "namespaces of the hub whose Applications the agent carries out (default: all)")
	flags.StringSliceVar(&n.Target, "namespaces", nil, "namespaces of this cluster in which objects may be (default: all)")
	flags.StringSliceVar(&n.Map, "namespace-map", nil, "namespace of this cluster for the objects of each namespace of the hub, as hub=target,... (default: the namespace of the same name)")
}

// mapping maps each namespace of the hub to its namespace on the target, where that has
// another name. It expects valid entries.
func (n *Namespaces) mapping() map[string]string {
	mapping := make(map[string]string, len(n.Map))
	for _, entry := range n.Map {
		hub, target, _ := strings.Cut(entry, "=")
		mapping[hub] = target
	}
	return mapping
}

func (n *Namespaces) validate() error {
	failures := []error{options.ValidateNames("--hub-namespaces", n.Hub...), options.ValidateNames("--namespaces", n.Target...)}
	for _, entry := range n.Map {
		failures = append(failures, n.validateEntry(entry))
	}
	if err := errors.Join(failures...); err != nil {
		return err
	}
	return n.validateApart()
}

func (n *Namespaces) validateEntry(entry string) error {
	hub, target, ok := strings.Cut(entry, "=")
	if !ok {
		return fmt.Errorf("--namespace-map: %q is not of the form hub=target", entry)
	}
	failures := []error{options.ValidateNames("--namespace-map", hub, target)}
	if !allows(n.Hub, hub) {
		failures = append(failures, fmt.Errorf("--namespace-map: %s: %s is not among --hub-namespaces", entry, hub))
	}
	if !allows(n.Target, target) {
		failures = append(failures, fmt.Errorf("--namespace-map: %s: %s is not among --namespaces", entry, target))
	}
	return errors.Join(failures...)
}

// validateApart refuses a map that joins two namespaces: two Applications of one name in
// them would have the same objects. A namespace that is not in the map keeps its name.
func (n *Namespaces) validateApart() error {
	mapping := n.mapping()
	if len(mapping) < len(n.Map) {
		return errors.New("--namespace-map: a namespace of the hub is in it twice")
	}
	from := map[string]string{}
	for _, hub := range slices.Sorted(maps.Keys(mapping)) {
		target := mapping[hub]
		other, taken := from[target]
		if _, moved := mapping[target]; !taken && !moved && allows(n.Hub, target) {
			other, taken = target, true
		}
		if taken && other != hub {
			return fmt.Errorf("--namespace-map: Applications of %s and of %s would have their objects in one namespace, %s, "+
				"and could claim the same object: give each a namespace of its own, or list the intended ones in --hub-namespaces", other, hub, target)
		}
		from[target] = hub
	}
	return nil
}

// allows reports whether a list has a name. An empty list stands for all names.
func allows(names []string, name string) bool {
	return len(names) == 0 || slices.Contains(names, name)
}
