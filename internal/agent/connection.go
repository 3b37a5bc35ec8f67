package agent

import (
	"net"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
)

// connection is how to reach an API server, by TCP connections that can be left
// behind: one over which nothing arrives any more is noticed after 45 s only, and
// meanwhile holds up whoever waits for an answer.
type connection struct {
	*rest.Config

	// renew ends the TCP connections: what is under way fails, and what follows
	// makes new ones.
	renew func()
}

// newConnection makes the connection that all clients of a server share. What
// brings a transport or credentials of its own kind is left as it is.
func newConnection(config *rest.Config) (connection, error) {
	if config.Transport != nil || config.Dial != nil || config.ExecProvider != nil || config.AuthProvider != nil {
		return connection{config, func() {}}, nil
	}
	url, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return connection{}, err
	}
	dialer := connrotation.NewDialer((&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext)
	secured := &rest.Config{Host: config.Host, TLSClientConfig: config.TLSClientConfig, DisableCompression: config.DisableCompression, Proxy: config.Proxy, Dial: dialer.DialContext}
	transport, err := rest.TransportFor(secured)
	if err != nil {
		return connection{}, err
	}
	shared := rest.CopyConfig(config)
	shared.Host, shared.Transport, shared.TLSClientConfig, shared.Proxy = url.String(), patient{transport, answerPatience}, rest.TLSClientConfig{}, nil
	return connection{shared, dialer.CloseAll}, nil
}
