package enrol

import (
	"errors"
	"fmt"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Connection says how to reach the hub, as its administrator.
type Connection struct {
	// Config gives what the flags of kubectl say; nil: what the kubeconfig file says.
	Config     func() (*rest.Config, error)
	Kubeconfig string
}

func (c *Connection) config() (*rest.Config, error) {
	read := c.Config
	if read == nil {
		read = func() (*rest.Config, error) { return clientcmd.BuildConfigFromFlags("", c.Kubeconfig) }
	}
	config, err := read()
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
