package hooks

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/krake-observer/krake-observer/internal/pki"
)

const (
	// AuthoritySecret names the Secret with the CA, in the namespace of the agent. It is
	// shipped empty. The CA is in its keys tls.crt and tls.key.
	AuthoritySecret = "krake-hooks-ca" //nolint:gosec // a name, and nothing that is secret
	authorityName   = "krake-hooks-ca"

	day  = 24 * time.Hour
	year = 365 * day
	// authorityValidity is how long a CA is valid. One of ours is replaced when
	// authorityRest is left.
	authorityValidity = 10 * year
	authorityRest     = 30 * day
	// servingValidity is how long a serving certificate is valid. It is never
	// stored, so that each replica makes its own.
	servingValidity = 90 * day
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
	secrets  corev1client.SecretsGetter
	secret   types.NamespacedName
	endpoint Endpoint
	now      func() time.Time
	logger   logr.Logger

	ready     chan struct{}
	becomes   sync.Once
	mu        sync.Mutex
	authority *pki.Pair
	serving   *pki.Pair
}

// NewIssuer makes an Issuer that has no CA until it is started. It gets and updates the Secret
// [AuthoritySecret] of the namespace, and no other.
func NewIssuer(secrets corev1client.SecretsGetter, namespace string, endpoint Endpoint, now func() time.Time, logger logr.Logger) *Issuer {
	secret := types.NamespacedName{Namespace: namespace, Name: AuthoritySecret}
	return &Issuer{secrets: secrets, secret: secret, endpoint: endpoint, now: now, logger: logger, ready: make(chan struct{})}
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
func (i *Issuer) present() (*pki.Pair, error) {
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
	ca, err := i.keep(ctx)
	for tries := 1; tries < looksAtOnce && apierrors.IsConflict(err); tries++ {
		ca, err = i.keep(ctx)
	}
	switch {
	case apierrors.IsConflict(err):
		return fmt.Errorf("store a CA: another client has stored a CA, %d times", looksAtOnce)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: the overlay for hooks has an empty one, which the agent fills: apply it", err)
	case err != nil:
		return err
	}
	i.take(ca)
	return nil
}

// keep returns the stored CA, or stores a new one.
func (i *Issuer) keep(ctx context.Context) (ca *pki.Pair, err error) {
	_, err = pki.UpdateSecret(ctx, i.secrets, i.secret, "krake-agent-hooks", func(data map[string][]byte) (map[string][]byte, error) {
		if ca, err = keepAuthority(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey], i.now()); err != nil {
			return nil, err
		}
		stored := map[string][]byte{}
		maps.Copy(stored, data)
		stored[corev1.TLSCertKey], stored[corev1.TLSPrivateKeyKey] = ca.CertPEM, ca.KeyPEM
		return stored, nil
	})
	return ca, err
}

// keepAuthority returns the stored CA, or a new one if there is none or ours is due. A CA that
// this program did not make is never replaced.
func keepAuthority(certificate, key []byte, now time.Time) (*pki.Pair, error) {
	if len(certificate)+len(key) > 0 {
		stored, err := pki.ParseCA(certificate, key, authorityName, now)
		if err != nil {
			return nil, fmt.Errorf("the Secret %s cannot be used: %w: put a CA and its key there, "+
				"or remove tls.crt and tls.key to have a new one made", AuthoritySecret, err)
		}
		if !stored.IsOurs(authorityName) || stored.Leaf.NotAfter.Sub(now) > authorityRest {
			return stored, nil
		}
	}
	made, err := pki.NewCA(authorityName, now, authorityValidity)
	if err != nil {
		return nil, fmt.Errorf("make a CA: %w", err)
	}
	return made, nil
}

// take starts to use a CA.
func (i *Issuer) take(ca *pki.Pair) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.authority == nil || !i.authority.Leaf.Equal(ca.Leaf) {
		i.authority = ca
		i.logger.Info("CA of the hooks loaded", "expires", ca.Leaf.NotAfter)
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
				ClientCAs:      pki.Pool(present.Leaf),
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
	if i.serving != nil && canStay(i.serving, i.authority, x509.ExtKeyUsageServerAuth, now) {
		return &i.serving.Certificate, nil
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: "krake-hooks"}, // a host may be too long for it
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if address := i.endpoint.address(); address != nil {
		template.IPAddresses = []net.IP{address}
	} else {
		template.DNSNames = []string{i.endpoint.host}
	}
	made, err := i.authority.Issue(template, now, servingValidity)
	if err != nil {
		return nil, fmt.Errorf("make a serving certificate: %w", err)
	}
	i.serving = made
	i.logger.Info("serving certificate of the hooks made", "expires", made.Leaf.NotAfter)
	return &made.Certificate, nil
}

// canStay reports whether a pair is valid for the usage, and more than a third of its time is left.
func canStay(pair, ca *pki.Pair, usage x509.ExtKeyUsage, now time.Time) bool {
	whole := pair.Leaf.NotAfter.Sub(pair.Leaf.NotBefore)
	return pair.IsValid(ca.Leaf, usage, "", now) && !pair.IsDue(ca.Leaf, whole/3, now)
}
