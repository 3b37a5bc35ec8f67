// Package reach has the flag that says how far Applications may reach, which webhook,
// agent and enrolment share. It is not in package options, because kubectl krake would
// then link the libraries of a server.
package reach

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/krake-observer/krake-observer/pkg/mutate"
)

// Options say how far Applications may reach.
type Options struct {
	Scope mutate.Scope
}

// AddFlags adds the flag --scope.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar((*string)(&o.Scope), "scope", string(mutate.NamespaceScope),
		"how far an Application may reach, on webhook and agent alike: namespace (its own) or cluster (every one, and what is in none)")
}

// Validate checks the flag.
func (o *Options) Validate() error {
	if o.Scope != mutate.NamespaceScope && o.Scope != mutate.ClusterScope {
		return fmt.Errorf("--scope: %q is neither %s nor %s", o.Scope, mutate.NamespaceScope, mutate.ClusterScope)
	}
	return nil
}
