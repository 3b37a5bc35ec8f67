package workload

import (
	"fmt"
	"slices"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Options are the flags of a contender, which the bench sets.
type Options struct {
	Kubeconfig, Kind, Set string
	// PerApplication is the number of objects in an Application.
	PerApplication int
}

// AddFlags adds the flags with their defaults.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "how to reach the API server")
	flags.StringVar(&o.Kind, "kind", "configmap", "what is guarded: configmap or deployment")
	flags.StringVar(&o.Set, "set", "", "which of them: those whose label "+SetLabel+" has this value")
	flags.IntVar(&o.PerApplication, "per-application", 10, "how many objects an Application has, for those who know Applications")
}

// Read returns what the flags name.
func (o *Options) Read() (*rest.Config, Kind, error) {
	if !slices.Contains(Kinds(), o.Kind) {
		return nil, Kind{}, fmt.Errorf("--kind: %q is none", o.Kind)
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	return config, KindOf(o.Kind), err
}
