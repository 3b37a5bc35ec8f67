package cluster

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Cluster is a Kubernetes cluster that the tests may change freely, with the processes
// that the tests run beside it.
type Cluster struct {
	tier       string
	supervisor *supervisor
	config     *clientcmdapi.Config // for the administrator, without references to files
	rest       *rest.Config
	kubeconfig string
	kubectl    string
	auditLog   string
	kubelet    bool
	image      string
	endStandIn func()       // nil without a stand-in for the kubelet
	remove     func() error // removes everything that is no process; may be nil
}

// setConfig sets the configuration, and the file that has it.
func (c *Cluster) setConfig(file string, config *clientcmdapi.Config) error {
	restConfig, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("read kubeconfig %s: %w", file, err)
	}
	restConfig.QPS = -1 // no limit: a test must not wait for its own client
	c.kubeconfig, c.config, c.rest = file, config, restConfig
	return nil
}

// URL returns the address of the API server.
func (c *Cluster) URL() string { return c.rest.Host }

// Kubeconfig returns the path of a kubeconfig file with all rights.
func (c *Cluster) Kubeconfig() string { return c.kubeconfig }

// RESTConfig returns a copy of a configuration with all rights and no rate limit.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.rest) }

// Kubectl returns the path of a kubectl, or "kubectl" without one.
func (c *Cluster) Kubectl() string { return c.kubectl }

// AuditLog returns the path of the audit log, with one event in JSON on each line; it
// is empty for a cluster without one. In a local cluster, the file has the event of a
// request once its response has been read.
func (c *Cluster) AuditLog() string { return c.auditLog }

// HasKubelet reports whether Pods run. A stand-in for the kubelet runs none.
func (c *Cluster) HasKubelet() bool { return c.kubelet }

// Image returns the image of webhook and agent on the nodes. It is empty if the two
// must run as processes beside the cluster.
func (c *Cluster) Image() string { return c.image }

// Dir returns the folder with the logs of all processes and, for a local cluster, its
// data.
func (c *Cluster) Dir() string { return c.supervisor.folder }

// Run starts a command that ends with the cluster, at the latest with this program. Its
// output is appended to the file NAME.log in Dir. The command's standard output and
// error, and its SysProcAttr, must not be set.
func (c *Cluster) Run(name string, command *exec.Cmd) (*Process, error) {
	return c.supervisor.start(name, command)
}

// Processes returns all started processes in the order of their starts, including those
// that have ended.
func (c *Cluster) Processes() []*Process { return c.supervisor.all() }

// Newest returns the process of a name that was started last, or nil.
func (c *Cluster) Newest(name string) *Process {
	for _, process := range slices.Backward(c.Processes()) {
		if process.name == name {
			return process
		}
	}
	return nil
}

// Again starts a command in place of a process that has ended, under its name. Without a command, it starts
// the same once more.
func (c *Cluster) Again(p *Process, command *exec.Cmd) (*Process, error) {
	if command == nil {
		command = p.Command()
	}
	next, err := c.Run(p.name, command)
	if err == nil {
		next.mayHang = p.mayHang
	}
	return next, err
}

// Stop ends the processes, those of Run first, and the cluster unless it existed before,
// and removes Dir. The error has the processes that failed before Stop, and those of Run
// that did not end when asked. A second call does nothing.
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
