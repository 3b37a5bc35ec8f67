// Package connection connects to an API server so that no request waits for ever.
//
// A [Connection] can abandon its TCP connections when nothing arrives over them any more.
// Requests without an answer end after about a minute; a watch continues:
//
//	GET /api/v1/configmaps              ends after 65 s, if the server is silent
//	GET /api/v1/configmaps?watch=true   lasts as long as it lasts
//
// The package does not know whether it connects to the hub or the target, or when to renew
// a connection.
package connection

import (
	"context"
	"io"
	"net"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/connrotation"
)

// Connection is the configuration of all clients of an API server. Its TCP connections can
// be abandoned: client-go notices a dead one only after 45 s, and its requests wait
// meanwhile.
type Connection struct {
	*rest.Config

	// Renew ends the TCP connections. Running requests fail, and the next ones open new
	// connections.
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

// answerPatience is how long an answer may take, to its last byte. An API server gives up
// on a request after 60 s. An answer that takes longer is lost, and the client would wait
// for it for ever.
const answerPatience = 65 * time.Second

// patient ends requests without an answer. A watch has no limit.
type patient struct {
	http.RoundTripper

	patience time.Duration
}

// RoundTrip implements http.RoundTripper.
func (p patient) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Has("watch") {
		return p.RoundTripper.RoundTrip(request)
	}
	ctx, cancel := context.WithTimeout(request.Context(), p.patience)
	response, err := p.RoundTripper.RoundTrip(request.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	response.Body = ending{response.Body, cancel}
	return response, nil
}

// ending is the body of an answer, which stops the clock when it is closed.
type ending struct {
	io.ReadCloser

	end context.CancelFunc
}

// Close implements io.Closer.
func (e ending) Close() error {
	defer e.end()
	return e.ReadCloser.Close()
}
