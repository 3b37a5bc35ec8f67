package enrol

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// tokenFile is beside the kubeconfig.
const tokenFile = "token"

// address is the hub's address as a target reaches it, and the CA that verifies it.
type address struct {
	server     string
	serverName string
	ca         []byte
	// uid is the UID of the hub's namespace kube-system. By it an agent knows whether its cluster is the hub.
	uid types.UID
}

// addressOf returns the address of the administrator's connection, or the server that replaces
// it.
func addressOf(config *rest.Config, server string) (address, error) {
	config = rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return address{}, fmt.Errorf("read the hub's certificate authority: %w", err)
	}
	if config.Insecure {
		return address{}, errors.New("the kubeconfig does not verify the hub's certificate: the agent's token would go to any server that answers at that address: use one with the certificate authority")
	}
	a := address{server: server, ca: config.CAData}
	if server == "" {
		a.server, a.serverName = config.Host, config.ServerName
	}
	if !isAddress(a.server) {
		return address{}, fmt.Errorf("the hub is at %q, which is not of the form https://HOST[:PORT]: set another by --hub-server", a.server)
	}
	return a, nil
}

// port returns the port of the hub, and whether the shipped NetworkPolicy allows it.
func (a address) port() (port int, known bool) {
	address, err := url.Parse(a.server)
	if err != nil {
		return 0, true // it was checked
	}
	port, err = strconv.Atoi(address.Port())
	return port, err != nil || port == 443 || port == 6443
}

// kubeconfig connects to the hub with the token of a file in the same folder. Clients read the
// token again and again, because the kubelet replaces it when the Secret changes.
func (a address) kubeconfig(cluster string) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["hub"] = &clientcmdapi.Cluster{Server: a.server, TLSServerName: a.serverName, CertificateAuthorityData: a.ca}
	config.AuthInfos[cluster] = &clientcmdapi.AuthInfo{TokenFile: tokenFile}
	config.CurrentContext = cluster + "@hub"
	config.Contexts[config.CurrentContext] = &clientcmdapi.Context{Cluster: "hub", AuthInfo: cluster}
	text, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("write the kubeconfig: %w", err)
	}
	return text, nil
}
