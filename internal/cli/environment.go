package cli

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// fieldManager is the name of these commands in managedFields.
const fieldManager = "kubectl-krake"

// environment is what the commands share.
type environment struct {
	genericiooptions.IOStreams

	// hub says how to reach the API server with the Applications, and target that with
	// their objects, if it is another one.
	hub    *genericclioptions.ConfigFlags
	target targetFlags
	// showPrivate: values are shown that may be secrets.
	showPrivate bool
	now         func() time.Time
}

// addPrivateTo adds the flag --show-private to a command that looks at objects.
func (e *environment) addPrivateTo(command *cobra.Command) {
	command.Flags().BoolVar(&e.showPrivate, "show-private", false,
		"show values that may be secrets: of the environment and the arguments of containers, of the data of ConfigMaps, of fields that are called passwords; never those of a Secret")
}

// newFlags returns the flags of kubectl. Warnings of an API server are printed as kubectl prints them.
func (e *environment) newFlags() *genericclioptions.ConfigFlags {
	return genericclioptions.NewConfigFlags(true).WithWrapConfigFn(func(config *rest.Config) *rest.Config {
		config.WarningHandler = rest.NewWarningWriter(e.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
		return config
	})
}

// applications returns the client of the hub, and the namespace that the flags select.
func (e *environment) applications() (client corev1.ConfigMapsGetter, namespace string, err error) {
	config, err := e.hub.ToRESTConfig()
	if err != nil {
		return nil, "", err
	}
	if client, err = corev1.NewForConfig(config); err != nil {
		return nil, "", err
	}
	namespace, _, err = e.hub.ToRawKubeConfigLoader().Namespace()
	return client, namespace, err
}

// targetFlags say how to reach the cluster with the objects, if it is not the hub.
type targetFlags struct{ kubeconfig, context string }

func (t *targetFlags) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&t.kubeconfig, "target-kubeconfig", "", "kubeconfig file of the cluster with the objects (default: that of the hub)")
	flags.StringVar(&t.context, "target-context", "", "context of the cluster with the objects (default: for cluster local that of the hub)")
}
