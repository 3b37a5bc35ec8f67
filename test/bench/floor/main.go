// Floor is the minimal repairer that the load bench compares with. It watches the
// objects of a set. For an object with wrong leaves, it sends one PATCH of these
// leaves. It has no cache, no history, no ownership of objects and no memory of its
// repairs.
//
//	floor --kubeconfig FILE --kind configmap --set drift
//	floor --kubeconfig FILE --kind configmap --set drift --poll 2s
//	floor --kubeconfig FILE --kind deployment --set drift --only-decode
//
// With --poll it reads each object separately at that interval, and watches nothing.
// With --only-decode it only decodes each event to an unstructured tree.
package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/krake-observer/krake-observer/test/bench/workload"
	"github.com/krake-observer/krake-observer/test/program"
)

func main() {
	options := new(Options)
	program.Main("floor", options, func(ctx context.Context) error {
		if err := run(ctx, *options); ctx.Err() == nil {
			return err
		}
		return nil // an interrupt is the usual end
	})
}

// Options are the options that the bench sets.
type Options struct {
	Kubeconfig, Kind, Set, Encoding string

	Poll       time.Duration
	OnlyDecode bool
}

// AddFlags adds the flags with their defaults.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", "", "how to reach the API server")
	flags.StringVar(&o.Kind, "kind", "configmap", "what is guarded: configmap, deployment or custom")
	flags.StringVar(&o.Set, "set", "", "which of them: those whose label "+workload.SetLabel+" has this value")
	flags.StringVar(&o.Encoding, "encoding", "protobuf", "what the API server is to send: protobuf or json")
	flags.DurationVar(&o.Poll, "poll", 0, "ask for each object as often as that; 0: watch")
	flags.BoolVar(&o.OnlyDecode, "only-decode", false, "decode the events to unstructured trees, and do nothing")
}

func run(ctx context.Context, o Options) error {
	kind, ok := workload.Kinds()[o.Kind]
	if !ok {
		return fmt.Errorf("--kind: %q is none", o.Kind)
	}
	if o.Encoding != "protobuf" && o.Encoding != "json" {
		return errors.New("--encoding: it is protobuf or json")
	}
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return err
	}
	clients, err := workload.NewClients(config, o.Encoding == "protobuf")
	if err != nil {
		return err
	}
	r := repairer{kind: kind, clients: clients, selector: workload.SetLabel + "=" + o.Set}
	switch {
	case o.OnlyDecode:
		return r.decode(ctx)
	case o.Poll > 0:
		return r.poll(ctx, config, o.Poll)
	}
	return r.guard(ctx)
}
