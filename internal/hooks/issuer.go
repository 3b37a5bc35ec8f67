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
	// servingValidity is how long a serving certificate is good for. It is never
	// stored, so that each replica makes its own.
	servingValidity = 90 * 24 * time.Hour
	// lookEvery is how often the CA is read again, as people may replace it and other
	// replicas do; lookAgain is the same while there is none.
	lookEvery = time.Minute
	lookAgain = 5 * time.Second
	// lookPatience is how long one look may take.
	lookPatience = 10 * time.Second
	// looksAtOnce bounds how often one look begins anew, when others store meanwhile.
	looksAtOnce = 5
)

// errNoAuthority is what there is to say while no CA could be read.
var errNoAuthority = errors.New("there is no CA of the hooks yet")

// Issuer makes what the Secrets of the hooks hold, and what the endpoint serves.
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

// Start keeps the CA until the context ends. That it cannot is no reason to end:
// it is logged, and tried again.
func (i *Issuer) Start(ctx context.Context) error {
	said := ""
	for {
		if err := i.Look(ctx); err == nil {
			said = ""
		} else if ctx.Err() == nil && err.Error() != said {
			said = err.Error()
			i.logger.Error(err, "the CA of the hooks is not kept")
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

// Ready tells if there is a CA. It is a check of health.
func (i *Issuer) Ready(*http.Request) error {
	_, err := i.present()
	return err
}

// present gives the CA.
func (i *Issuer) present() (*authority, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.authority == nil {
		return nil, errNoAuthority
	}
	return i.authority, nil
}

// Look reads the CA, and makes one if there is none, or ours is about to expire. In
// case of an error the one that it has had stays.
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

// keep gives the CA that is stored, or stores one.
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
				"or remove tls.crt and tls.key, and a new one is made", AuthoritySecret, err)
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

// take puts a CA to use.
func (i *Issuer) take(kept *authority) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.authority == nil || !i.authority.certificate.Equal(kept.certificate) {
		i.authority = kept
		i.logger.Info("CA of the hooks loaded", "expires", kept.certificate.NotAfter)
	}
	i.becomes.Do(func() { close(i.ready) })
}

// TLS is the configuration of a server. Clients need no certificate to be heard;
// one that they have must be signed by the CA.
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
				// A resumed session has the certificate of the first one, whatever CA there
				// is now.
				SessionTicketsDisabled: true,
			}, nil
		},
	}
}

// certificate gives what is served, and makes it anew in time.
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
