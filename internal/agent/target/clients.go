// Package target connects to the target cluster: it has the clients of the agent, and the
// service accounts that it writes as.
//
// Valid: a write of an Application with a service account goes out as that account.
// Invalid: a write goes out as the agent because the account is missing. It is refused
// ([Accounts]).
//
// The package does not know what is written, or whether the agent may write. The caller
// passes a connection with a fence.
package target

import (
	"net/http"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Clients are the clients of the target, which share one connection.
type Clients struct {
	Objects   dynamic.Interface
	Discovery discovery.DiscoveryInterface
	Metadata  metadata.Interface
}

// NewClients makes the clients of a connection.
func NewClients(config *rest.Config) (Clients, error) {
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return Clients{}, err
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(withLimit(config))
	if err != nil {
		return Clients{}, err
	}
	watched, err := metadata.NewForConfig(config)
	return Clients{objects, kinds, watched}, err
}

// maxDescription is the number of bytes of one answer about what the target serves. The OpenAPI document of a group and
// version grows with its definitions.
const maxDescription = 16 << 20

// withLimit returns the configuration with a limit for the size of an answer.
func withLimit(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper { return limited{inner} })
	return config
}

type limited struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l limited) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := l.RoundTripper.RoundTrip(request)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, maxDescription)
	}
	return response, err
}
