// Gitops is a loop over gitops-engine, the library of Argo CD. The library's cache
// watches the cluster. Its diff compares the Application of a changed object, and its
// server-side apply writes the whole object. The loop leaves out everything else that
// Argo CD does. With --engine-sync it leaves comparing and applying to the library's Sync, as
// the library's own example does.
//
//	gitops --kubeconfig FILE --kind configmap --set drift
package main

import (
	"context"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/krake-observer/krake-observer/test/bench/workload"
	"github.com/krake-observer/krake-observer/test/program"
)

func main() {
	options := new(Options)
	program.Main("gitops", options, func(ctx context.Context) error {
		if err := run(ctx, *options); ctx.Err() == nil {
			return err
		}
		return nil // an interrupt is the usual end
	})
}

// Options are the options that the bench sets.
type Options struct {
	Kubeconfig, Kind, Set string
	// PerApplication is the number of objects in an Application.
	PerApplication int
	// EngineSync leaves comparing and applying to the Sync of gitops-engine.
	EngineSync bool
}

// AddFlags adds the flags with their defaults.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "how to reach the API server")
	flags.StringVar(&o.Kind, "kind", "configmap", "what is guarded: configmap, deployment or custom")
	flags.StringVar(&o.Set, "set", "", "which of them: those whose label "+workload.SetLabel+" has this value")
	flags.BoolVar(&o.EngineSync, "engine-sync", false, "compare and apply by gitops-engine's own Sync")
	flags.IntVar(&o.PerApplication, "per-application", 10, "how many objects an Application has")
}

func run(ctx context.Context, o Options) error {
	kind, ok := workload.Kinds()[o.Kind]
	if !ok {
		return fmt.Errorf("--kind: %q is none", o.Kind)
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1 // a contender must not wait for its own client
	l := newLoop(config, kind, o)
	return l.run(ctx)
}
