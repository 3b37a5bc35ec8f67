package cluster

import (
	"errors"
	"fmt"
	"os/exec"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Cluster is a Kubernetes cluster that the tests may do with as they please,
// and the processes that the tests run beside it.
type Cluster struct {
	tier       string
	supervisor *supervisor
	config     *clientcmdapi.Config // of the administrator, without references to files
	rest       *rest.Config
	kubeconfig string
	kubectl    string
	auditLog   string
	kubelet    bool
	image      string
	endStandIn func()       // nil if there is no stand-in for the kubelet
	remove     func() error // takes away what is no process; nil if there is nothing
}

// setConfig has the cluster be that of the configuration, which the file holds.
func (c *Cluster) setConfig(file string, config *clientcmdapi.Config) error {
	restConfig, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("read kubeconfig %s: %w", file, err)
	}
	restConfig.QPS = -1 // no limit: a test must not wait for its own client
	c.kubeconfig, c.config, c.rest = file, config, restConfig
	return nil
}

// URL is where the API server is.
func (c *Cluster) URL() string { return c.rest.Host }

// Kubeconfig is the path of a kubeconfig file with all rights.
func (c *Cluster) Kubeconfig() string { return c.kubeconfig }

// RESTConfig is a configuration with all rights and no limit of requests. It is
// the caller's own.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.rest) }

// Kubectl is the path of a kubectl, or "kubectl" if there is none.
func (c *Cluster) Kubectl() string { return c.kubectl }

// AuditLog is the path of the audit log, an event in JSON a line; empty if the
// cluster has none. In a local cluster the event of a request is in the file
// when its response has been read to the end.
func (c *Cluster) AuditLog() string { return c.auditLog }

// HasKubelet tells whether Pods run. A stand-in for the kubelet runs none.
func (c *Cluster) HasKubelet() bool { return c.kubelet }

// Image is the one of webhook and agent that the nodes have; empty if there is none,
// and the two are to be processes beside the cluster.
func (c *Cluster) Image() string { return c.image }

// Dir is the folder with the logs of all processes and, in a local cluster, its
// data.
func (c *Cluster) Dir() string { return c.supervisor.folder }

// Run starts a command that ends with the cluster, at the latest with this
// program. Its output is added to the file NAME.log in Dir. The command's
// standard output and error, and its SysProcAttr, must not be set.
func (c *Cluster) Run(name string, command *exec.Cmd) (*Process, error) {
	return c.supervisor.start(name, command)
}

// Processes are all processes that were started, including those that have
// ended, in the order of their starts.
func (c *Cluster) Processes() []*Process { return c.supervisor.all() }

// Stop ends the processes, those of Run first, and the cluster unless it existed
// before, and removes Dir. The error tells which processes had failed by themselves, and
// which of those of Run did not end when asked. Stopping twice is allowed.
func (c *Cluster) Stop() error {
	if c.endStandIn != nil {
		c.endStandIn()
	}
	err := c.supervisor.stop()
	if c.remove != nil {
		err = errors.Join(err, c.remove())
		c.remove = nil
	}
	return err
}
