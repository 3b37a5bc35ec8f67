package cli

import (
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/dynamic"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// targetFlags say how to reach the cluster with the objects, if it is not the hub.
type targetFlags struct{ kubeconfig, context string }

func (t *targetFlags) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&t.kubeconfig, "target-kubeconfig", "", "kubeconfig file of the cluster with the objects (default: that of the hub)")
	flags.StringVar(&t.context, "target-context", "", "context of the cluster with the objects (default: for cluster local that of the hub)")
}

// applications gives the client of the hub, and the namespace that the user means.
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

// objects are the clients of the cluster with the objects.
type objects struct {
	dynamic.Interface

	kinds meta.RESTMapper
}

// objectsOf connects to the cluster of an Application. Only the local one is known
// without being told.
func (e *environment) objectsOf(cluster string) (objects, error) {
	flags := e.hub
	switch {
	case e.target != targetFlags{}:
		flags = e.newFlags()
		flags.KubeConfig, flags.Context = &e.target.kubeconfig, &e.target.context
		if e.target.kubeconfig == "" {
			flags.KubeConfig = e.hub.KubeConfig
		}
	case cluster != application.LocalCluster:
		return objects{}, fmt.Errorf("the objects are on cluster %s: name it by --target-context or --target-kubeconfig", cluster)
	}
	config, err := flags.ToRESTConfig()
	if err != nil {
		return objects{}, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return objects{}, err
	}
	kinds, err := flags.ToRESTMapper()
	return objects{client, kinds}, err
}
