// Gitops is a loop over gitops-engine, the library of Argo CD. The library's cache
// watches the cluster. Its diff compares the Application of a changed object, and its
// server-side apply writes the whole object. The loop leaves out everything else that
// Argo CD does.
//
//	gitops --kubeconfig FILE --kind configmap --set drift
package main

import (
	"context"

	"github.com/krake-observer/krake-observer/internal/program"
	"github.com/krake-observer/krake-observer/test/bench/workload"
)

func main() {
	options := new(workload.Options)
	program.Main("gitops", options, func(ctx context.Context) error {
		config, kind, err := options.Read()
		if err != nil {
			return err
		}
		config.QPS = -1 // a contender must not wait for its own client
		if err := newLoop(config, kind, options).run(ctx); ctx.Err() == nil {
			return err
		}
		return nil // an interrupt is the usual end
	})
}
