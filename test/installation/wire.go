package installation

import (
	"fmt"
	"net/url"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Wire is a connection to an API server that reads and changes nothing. It can be cut,
// and it can go silent.
type Wire struct{ balancer *balancer }

// NewWire makes a wire to the API server of the configuration.
func NewWire(config *rest.Config) (*Wire, error) {
	server, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("address of the API server: %w", err)
	}
	b, err := startBalancer()
	if err != nil {
		return nil, err
	}
	return &Wire{b}, b.add(server.Host)
}

// URL returns the address of this end of the wire. The API server's certificate is
// valid for it.
func (w *Wire) URL() string { return "https://" + w.balancer.address() }

// WriteKubeconfig writes a copy of a kubeconfig file whose connections use the wire.
func (w *Wire) WriteKubeconfig(from, to string) error {
	config, err := clientcmd.LoadFromFile(from)
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server = w.URL()
	}
	if err := clientcmd.WriteToFile(*config, to); err != nil {
		return fmt.Errorf("write kubeconfig: %w", err)
	}
	return nil
}

// Cut ends all connections, and each new one at once.
func (w *Wire) Cut() { w.balancer.reset() }

// Silence lets every request wait, on old and new connections, as a network does that
// loses every packet.
func (w *Wire) Silence() error { return w.balancer.hang() }

// Mend undoes [Wire.Cut] and [Wire.Silence]. Bytes sent meanwhile arrive now, on
// connections that are still open.
func (w *Wire) Mend() error { return w.balancer.resume() }

// Connections returns how many connections were made or tried over the wire so far.
func (w *Wire) Connections() int64 { return w.balancer.accepted.Load() }

// Close closes the wire.
func (w *Wire) Close() error { return w.balancer.refuse() }
