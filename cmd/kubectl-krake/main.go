// Kubectl-krake is for users of Applications, and for the administrator of a hub.
// On the PATH it is "kubectl krake".
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // as kubectl logs in
	"k8s.io/klog/v2"

	"github.com/krake-observer/krake-observer/internal/cli"
	"github.com/krake-observer/krake-observer/internal/cli/env"
)

func main() {
	klog.SetLogger(logr.Discard()) // a command reports its error once, and without a log
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := cli.NewCommand(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}).ExecuteContext(ctx)
	stop()
	os.Exit(env.Fail(err, os.Stderr))
}
