package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/krake-observer/krake-observer/pkg/application"
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
	// Hosts are names as example.org, *.example.org, example.org:8443 and 192.0.2.1.
	// None: nothing may be fetched.
	Hosts []string
	// AllowPrivate are ranges of addresses that hosts may have though they are not
	// public, for intranets. Link-local addresses stay refused.
	AllowPrivate []netip.Prefix
	// Timeout and MaxBytes are for all files of one translation: 10 s and 5 MiB.
	Timeout  time.Duration
	MaxBytes int64
	// RootCAs are the authorities to trust; nil: those of the system.
	RootCAs *x509.CertPool
	// Resolver resolves the names; nil: that of the system.
	Resolver *net.Resolver
}

// Fetcher gets what is behind URLs. It may be used by many at a time.
type Fetcher struct {
	hosts     hosts
	transport http.RoundTripper
	timeout   time.Duration
	maxBytes  int64
}

// New makes a fetcher. Its error names the host or the range that cannot be meant.
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
		return nil, errors.New("neither a time nor a number of bytes is below zero")
	}
	fetcher := &Fetcher{hosts: hosts, timeout: options.Timeout, maxBytes: options.MaxBytes}
	if fetcher.timeout == 0 {
		fetcher.timeout = defaultTimeout
	}
	if fetcher.maxBytes == 0 {
		fetcher.maxBytes = defaultMaxBytes
	}
	fetcher.transport = newTransport(options, addresses)
	return fetcher, nil
}

// newTransport makes what speaks HTTP. It is no client: it follows no redirect,
// knows no cookies, and adds no header for what was asked for before. Each request
// has a connection of its own, so that each has its address looked at.
func newTransport(options Options, addresses addresses) *http.Transport {
	dialer := &net.Dialer{Control: addresses.control, Resolver: options.Resolver}
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:                  nil, // not even that of the environment
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: options.RootCAs},
		Protocols:              protocols,
		DisableKeepAlives:      true,
		DisableCompression:     true, // what is counted is what is kept
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
}

// Fetch gets one file, as an archive is.
func (f *Fetcher) Fetch(ctx context.Context, source application.Source) ([]byte, error) {
	session, err := f.Session(ctx, source)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	return session.Open(session.Entry())
}
