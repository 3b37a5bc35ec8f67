package cluster

import (
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// WriteKubeconfig writes a kubeconfig file for the cluster whose user has a bearer
// token, such as that of a ServiceAccount. It replaces the file atomically: replicas of
// one account share it, and one may start while another one reads it.
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

// newKubeconfig has one context, with the name that kubeadm uses.
func newKubeconfig(name string, cluster *clientcmdapi.Cluster, user string, auth *clientcmdapi.AuthInfo) *clientcmdapi.Config {
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = cluster
	config.AuthInfos[user] = auth
	config.CurrentContext = user + "@" + name
	config.Contexts[config.CurrentContext] = &clientcmdapi.Context{Cluster: name, AuthInfo: user}
	return config
}

// readKubeconfig reads a file, with the content of the files that it refers to.
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
