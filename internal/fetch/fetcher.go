package fetch

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"time"
)

const (
	defaultTimeout  = 10 * time.Second
	defaultMaxBytes = 5 << 20
	maxRedirects    = 3 // of one file
	maxRequests     = 40
	maxHeaderBytes  = 64 << 10
)

// Options say what may be fetched.
type Options struct {
	// Hosts are names such as example.org, *.example.org, example.org:8443 and 192.0.2.1.
	// Without one, nothing may be fetched.
	Hosts []string
	// AllowPrivate are ranges of addresses that are not public and may be fetched from,
	// for intranets. Link-local addresses stay refused.
	AllowPrivate []netip.Prefix
	// Timeout and MaxBytes bound all files of one translation; 0 means 10 s and 5 MiB.
	Timeout  time.Duration
	MaxBytes int64
	// RootCAs and Resolver are those of the system where they are nil.
	RootCAs  *x509.CertPool
	Resolver *net.Resolver
}

// Fetcher fetches files from URLs. It is safe for concurrent use.
type Fetcher struct {
	hosts     hosts
	transport http.RoundTripper
	timeout   time.Duration
	maxBytes  int64
}

// New returns a fetcher. The error names the host or the range that is invalid.
func New(options Options) (*Fetcher, error) {
	hosts, err := newHosts(options.Hosts)
	if err != nil {
		return nil, err
	}
	addresses, err := newAddresses(options.AllowPrivate)
	if err != nil {
		return nil, err
	}
	if options.Timeout < 0 || options.MaxBytes < 0 {
		return nil, errors.New("times and numbers of bytes must not be negative")
	}
	return &Fetcher{
		hosts:     hosts,
		transport: newTransport(options, addresses),
		timeout:   cmp.Or(options.Timeout, defaultTimeout),
		maxBytes:  cmp.Or(options.MaxBytes, defaultMaxBytes),
	}, nil
}

// newTransport returns a transport, and no client: it follows no redirects, and has no
// cookies and no Referer. Each request opens a connection, so that its address is checked.
func newTransport(options Options, addresses addresses) *http.Transport {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:                  nil, // not even that of the environment
		DialContext:            (&net.Dialer{Control: addresses.control, Resolver: options.Resolver}).DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: options.RootCAs},
		Protocols:              protocols,
		DisableKeepAlives:      true,
		DisableCompression:     true, // the bytes that are counted are those that are kept
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
}
