package cluster

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// WriteKubeconfig writes a kubeconfig file for the cluster whose user
// authenticates with a bearer token, such as that of a ServiceAccount. A process that
// reads the file meanwhile gets the former file or the new one: replicas of one account
// share it, and the next one is started while the last one still reads it.
func (c *Cluster) WriteKubeconfig(path, user, token string) error {
	admin := c.config.Contexts[c.config.CurrentContext]
	config := newKubeconfig(admin.Cluster, c.config.Clusters[admin.Cluster].DeepCopy(),
		user, &clientcmdapi.AuthInfo{Token: token})
	written, err := os.MkdirTemp(filepath.Dir(path), ".kubeconfig-")
	if err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	defer os.RemoveAll(written) //nolint:errcheck // a temporary folder
	whole := filepath.Join(written, "config")
	if err := clientcmd.WriteToFile(*config, whole); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return os.Rename(whole, path)
}

// newKubeconfig has one context, which is named as kubeadm names it.
func newKubeconfig(name string, cluster *clientcmdapi.Cluster, user string, auth *clientcmdapi.AuthInfo) *clientcmdapi.Config {
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = cluster
	config.AuthInfos[user] = auth
	config.CurrentContext = user + "@" + name
	config.Contexts[config.CurrentContext] = &clientcmdapi.Context{Cluster: name, AuthInfo: user}
	return config
}

// readKubeconfig reads a file such that what it refers to is in the result.
func readKubeconfig(path string) (*clientcmdapi.Config, error) {
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	if err := clientcmd.ResolveLocalPaths(config); err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", path, err)
	}
	if err := clientcmdapi.FlattenConfig(config); err != nil {
		return nil, fmt.Errorf("read kubeconfig %s: %w", path, err)
	}
	return config, nil
}
