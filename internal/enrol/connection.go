package enrol

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Connection says how to reach the hub, as kubectl does.
type Connection struct {
	Kubeconfig string
	Context    string
}

// AddFlags adds the flags --kubeconfig and --context.
func (c *Connection) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.Kubeconfig, "kubeconfig", "", "kubeconfig file of the hub's administrator (default: as kubectl)")
	flags.StringVar(&c.Context, "context", "", "context of the kubeconfig file (default: the current one)")
}

func (c *Connection) config() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.Kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: c.Context}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("configure the connection to the hub: %w", err)
	}
	return config, nil
}

// hub is the hub, as its administrator reaches it.
type hub struct {
	config   *rest.Config
	client   kubernetes.Interface
	dynamic  dynamic.Interface
	metadata metadata.Interface
}

func (c *Connection) open() (*hub, error) {
	config, err := c.config()
	if err != nil {
		return nil, err
	}
	h := &hub{config: config}
	var failures [3]error
	h.client, failures[0] = kubernetes.NewForConfig(config)
	h.dynamic, failures[1] = dynamic.NewForConfig(config)
	h.metadata, failures[2] = metadata.NewForConfig(config)
	if err := errors.Join(failures[:]...); err != nil {
		return nil, fmt.Errorf("connect to the hub: %w", err)
	}
	return h, nil
}
