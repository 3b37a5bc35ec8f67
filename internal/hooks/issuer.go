package hooks

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

const (
	// servingValidity is how long a serving certificate is valid. It is never
	// stored, so that each replica makes its own.
	servingValidity = 90 * 24 * time.Hour
	// lookEvery is how often the CA is read again, because users and other replicas may
	// replace it. lookAgain is the same while there is none.
	lookEvery = time.Minute
	lookAgain = 5 * time.Second
	// lookPatience is how long one look may take.
	lookPatience = 10 * time.Second
	// looksAtOnce limits how often one look starts again because others store meanwhile.
	looksAtOnce = 5
)

// errNoAuthority is the error until a CA is read.
var errNoAuthority = errors.New("there is no CA of the hooks yet")

// Issuer makes the contents of the hooks' Secrets, and the certificate that the endpoint serves.
// Every replica has one, and all have the same CA.
type Issuer struct {
	keeper   Keeper
	endpoint Endpoint
	now      func() time.Time
	logger   logr.Logger

	ready     chan struct{}
	becomes   sync.Once
	mu        sync.Mutex
	authority *authority
	serving   *tls.Certificate
}

// NewIssuer makes an Issuer that has no CA until it is started.
func NewIssuer(keeper Keeper, endpoint Endpoint, now func() time.Time, logger logr.Logger) *Issuer {
	return &Issuer{keeper: keeper, endpoint: endpoint, now: now, logger: logger, ready: make(chan struct{})}
}

// Start maintains the CA until the context ends. It logs an error and tries again.
func (i *Issuer) Start(ctx context.Context) error {
	said := ""
	for {
		if err := i.Look(ctx); err == nil {
			said = ""
		} else if ctx.Err() == nil && err.Error() != said {
			said = err.Error()
			i.logger.Error(err, "the CA of the hooks cannot be read or stored; it is tried again")
		}
		wait := lookEvery
		if i.Ready(nil) != nil {
			wait = lookAgain
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// NeedLeaderElection is for the manager: every replica has an Issuer.
func (i *Issuer) NeedLeaderElection() bool { return false }

// Ready returns an error unless there is a CA. It is a health check.
func (i *Issuer) Ready(*http.Request) error {
	_, err := i.present()
	return err
}

// present returns the CA.
func (i *Issuer) present() (*authority, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.authority == nil {
		return nil, errNoAuthority
	}
	return i.authority, nil
}

// Look reads the CA, and makes one if there is none, or ours is about to expire. After
// an error the former CA stays in use.
func (i *Issuer) Look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	for range looksAtOnce {
		kept, err := i.keep(ctx)
		if errors.Is(err, ErrConflict) {
			continue
		}
		if err != nil {
			return err
		}
		i.take(kept)
		return nil
	}
	return fmt.Errorf("store a CA: %w, %d times", ErrConflict, looksAtOnce)
}

// keep returns the stored CA, or stores a new one.
func (i *Issuer) keep(ctx context.Context) (*authority, error) {
	certificate, key, err := i.keeper.Load(ctx)
	if err != nil {
		return nil, err
	}
	now := i.now()
	if len(certificate)+len(key) > 0 {
		kept, err := parseAuthority(certificate, key, now)
		if err != nil {
			return nil, fmt.Errorf("the Secret %s cannot be used: %w: put a CA and its key there, "+
				"or remove tls.crt and tls.key to have a new one made", AuthoritySecret, err)
		}
		if !kept.isDue(now) {
			return kept, nil
		}
	}
	if certificate, key, err = newAuthority(now); err != nil {
		return nil, err
	}
	if err := i.keeper.Store(ctx, certificate, key); err != nil {
		return nil, err
	}
	return parseAuthority(certificate, key, now)
}

// take starts to use a CA.
func (i *Issuer) take(kept *authority) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.authority == nil || !i.authority.certificate.Equal(kept.certificate) {
		i.authority = kept
		i.logger.Info("CA of the hooks loaded", "expires", kept.certificate.NotAfter)
	}
	i.becomes.Do(func() { close(i.ready) })
}

// TLS returns the configuration of a server. Clients may connect without a certificate;
// one that they send must be signed by the CA.
func (i *Issuer) TLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			present, err := i.present()
			if err != nil {
				return nil, err
			}
			return &tls.Config{
				MinVersion:     tls.VersionTLS12,
				NextProtos:     []string{"http/1.1"},
				Time:           i.now,
				GetCertificate: i.certificate,
				ClientAuth:     tls.VerifyClientCertIfGiven,
				ClientCAs:      present.pool,
				// A resumed session would keep the client certificate of the first one, even
				// if the CA was replaced since.
				SessionTicketsDisabled: true,
			}, nil
		},
	}
}

// certificate returns the serving certificate, and renews it in time.
func (i *Issuer) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.authority == nil {
		return nil, errNoAuthority
	}
	now := i.now()
	if i.serving != nil && i.authority.keeps(i.serving.Leaf, x509.ExtKeyUsageServerAuth, now) {
		return i.serving, nil
	}
	made, err := i.authority.serve(i.endpoint, now)
	if err != nil {
		return nil, err
	}
	i.serving = made
	i.logger.Info("serving certificate of the hooks made", "expires", made.Leaf.NotAfter)
	return made, nil
}

// serve makes a serving certificate.
func (a *authority) serve(endpoint Endpoint, now time.Time) (*tls.Certificate, error) {
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "krake-hooks"}, // a host may be too long for it
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if address := endpoint.address(); address != nil {
		template.IPAddresses = []net.IP{address}
	} else {
		template.DNSNames = []string{endpoint.host}
	}
	certificate, key, err := a.sign(template, now, servingValidity)
	if err != nil {
		return nil, fmt.Errorf("make a serving certificate: %w", err)
	}
	return parsePair(certificate, key)
}
