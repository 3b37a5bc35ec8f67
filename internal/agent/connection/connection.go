// Package connection reaches an API server in such a way that no request waits for ever.
//
// A [Connection] can leave its TCP connections behind when nothing arrives over them any
// more. Requests end without an answer after a minute or so; a watch goes on:
//
//	GET /api/v1/configmaps              ends after 65 s, if the server is silent
//	GET /api/v1/configmaps?watch=true   lasts as long as it lasts
//
// The package does not know whether it reaches the hub or the target, nor when a
// connection is to be renewed.
package connection

import (
	"net"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
)

// Connection is the configuration of all clients of an API server, with TCP connections
// that can be left behind: client-go notices only after 45 s that nothing arrives over
// one any more, and meanwhile the requests over it wait.
type Connection struct {
	*rest.Config

	// Renew ends the TCP connections: the requests under way fail, and those that follow
	// make new ones.
	Renew func()
}

// New makes the connection that all clients of a server share. A configuration with a
// transport or credentials of its own kind stays unchanged.
func New(config *rest.Config) (Connection, error) {
	if config.Transport != nil || config.Dial != nil || config.ExecProvider != nil || config.AuthProvider != nil {
		return Connection{config, func() {}}, nil
	}
	url, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return Connection{}, err
	}
	dialer := connrotation.NewDialer((&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext)
	secured := &rest.Config{Host: config.Host, TLSClientConfig: config.TLSClientConfig, DisableCompression: config.DisableCompression, Proxy: config.Proxy, Dial: dialer.DialContext}
	transport, err := rest.TransportFor(secured)
	if err != nil {
		return Connection{}, err
	}
	shared := rest.CopyConfig(config)
	shared.Host, shared.Transport, shared.TLSClientConfig, shared.Proxy = url.String(), patient{transport, answerPatience}, rest.TLSClientConfig{}, nil
	return Connection{shared, dialer.CloseAll}, nil
}
