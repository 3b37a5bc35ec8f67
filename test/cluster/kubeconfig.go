package cluster

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// WriteKubeconfig writes a kubeconfig file for the cluster whose user
// authenticates with a bearer token, such as that of a ServiceAccount.
func (c *Cluster) WriteKubeconfig(path, user, token string) error {
	admin := c.config.Contexts[c.config.CurrentContext]
	config := newKubeconfig(admin.Cluster, c.config.Clusters[admin.Cluster].DeepCopy(),
		user, &clientcmdapi.AuthInfo{Token: token})
	return clientcmd.WriteToFile(*config, path)
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
