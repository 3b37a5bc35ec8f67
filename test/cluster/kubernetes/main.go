// Kubernetes is one binary with the parts of a control plane that the tests start:
// etcd, kube-apiserver, kube-controller-manager and kube-scheduler. Its own name, or its
// first argument, selects one.
//
// It is a separate module. k8s.io/kubernetes needs a replace line for each of its
// staging modules, and the product's go.mod must not carry these.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics, as in the upstream commands
	_ "k8s.io/component-base/metrics/prometheus/version"  // build information, as in the upstream commands
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

var commands = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllers.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
}

func main() {
	name, args := filepath.Base(os.Args[0]), os.Args
	if name == "kubernetes" && len(args) > 1 {
		name, args = args[1], args[1:]
	}
	// The components read os.Args themselves.
	os.Args = args

	if name == "etcd" {
		etcdmain.Main(args)
		return
	}
	command, known := commands[name]
	if !known {
		fmt.Fprintf(os.Stderr, "kubernetes: %q is none of etcd, kube-apiserver, kube-controller-manager, kube-scheduler\n", name)
		os.Exit(2)
	}
	os.Exit(cli.Run(command()))
}
