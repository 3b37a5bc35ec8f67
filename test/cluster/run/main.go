// Run starts a Kubernetes cluster on this machine until Ctrl-C:
//
//	go run ./test/cluster/run
//
// or while a command runs, whose KUBECONFIG leads to it:
//
//	go run ./test/cluster/run -- kubectl get namespaces
//
// It ends with the command's exit code (which go run turns into 1). With --share, the command
// runs tests, and the packages that need only an API server share this cluster. With --build-only
// it builds what a cluster needs, which takes minutes the first time, and starts
// nothing.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	options := Options{}
	options.AddFlags(pflag.CommandLine)
	pflag.Parse()
	options.Command = pflag.Args()

	err := options.Validate()
	if err == nil {
		err = run(ctx, options)
	}
	if exit := exitCode(0); errors.As(err, &exit) {
		os.Exit(int(exit))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}
