package hooks

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/internal/pki"
	"github.com/krake-observer/krake-observer/pkg/application"
)

const (
	tokenBytes = 32
	// clientValidity is how long a client certificate is valid, unless its CA expires
	// earlier.
	clientValidity = year
)

// tokens are URL-safe and without padding, like those of Krake. Each token has
// only one valid form.
var tokens = base64.RawURLEncoding.Strict()

// Data returns the contents of one of the two Secrets of a hook: the one with the
// certificates, or the one with the token and the URL. It keeps what is still valid of
// the former contents.
func (i *Issuer) Data(app types.NamespacedName, uid types.UID, hook application.Hook, certs bool, former map[string][]byte) (map[string][]byte, error) {
	if hook != application.Complete && hook != application.Shutdown {
		return nil, fmt.Errorf("there is no hook %q", hook)
	}
	if app.Namespace == "" || app.Name == "" || uid == "" {
		return nil, fmt.Errorf("the hook %s of %s: namespace, name and UID are needed", hook, app)
	}
	if !certs {
		return map[string][]byte{
			application.TokenKey(hook): token(former[application.TokenKey(hook)]),
			application.URLKey(hook):   []byte(i.endpoint.URL(app, hook)),
		}, nil
	}
	present, err := i.present()
	if err != nil {
		return nil, fmt.Errorf("the hook %s of %s: %w", hook, app, err)
	}
	certificate, key, err := clientPair(present, identityOf(app, uid, hook), former, i.now())
	if err != nil {
		return nil, fmt.Errorf("the hook %s of %s: %w", hook, app, err)
	}
	return map[string][]byte{
		application.CABundleKey:    pki.Encode(present.Leaf),
		application.CertificateKey: certificate,
		application.PrivateKeyKey:  key,
	}, nil
}

// token returns the former token if it is valid, or a new one.
func token(former []byte) []byte {
	if decoded, err := tokens.DecodeString(string(former)); err == nil && len(decoded) == tokenBytes && !bytes.ContainsAny(former, "\r\n") {
		return bytes.Clone(former)
	}
	var random [tokenBytes]byte
	rand.Read(random[:]) // never fails, as of its documentation
	return []byte(tokens.EncodeToString(random[:]))
}

// identity is that of a caller: a hook of an Application.
type identity struct {
	user string
	uri  string
}

func identityOf(app types.NamespacedName, uid types.UID, hook application.Hook) identity {
	uri := url.URL{Scheme: "krake", Host: app.Namespace, Path: "/" + app.Name + "/" + string(uid)}
	return identity{user: "system:" + string(hook) + "-hook", uri: uri.String()}
}

// has reports whether a certificate is that of this identity and no other.
func (id identity) has(certificate *x509.Certificate) bool {
	return certificate.Subject.CommonName == id.user &&
		len(certificate.URIs) == 1 && certificate.URIs[0].String() == id.uri &&
		len(certificate.DNSNames)+len(certificate.IPAddresses)+len(certificate.EmailAddresses) == 0
}

// clientPair returns the former pair if the CA has issued it to this identity and it is not due,
// or a new one.
func clientPair(ca *pki.Pair, id identity, former map[string][]byte, now time.Time) (certificate, key []byte, err error) {
	certificate, key = former[application.CertificateKey], former[application.PrivateKeyKey]
	if pair, err := pki.ParsePair(certificate, key); err == nil && id.has(pair.Leaf) && canStay(pair, ca, x509.ExtKeyUsageClientAuth, now) {
		return bytes.Clone(certificate), bytes.Clone(key), nil
	}
	uri, err := url.Parse(id.uri)
	if err != nil {
		return nil, nil, errors.New("its name cannot be part of a URI")
	}
	made, err := ca.Issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: id.user},
		URIs:        []*url.URL{uri},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, now, clientValidity)
	if err != nil {
		return nil, nil, fmt.Errorf("make a client certificate: %w", err)
	}
	return made.CertPEM, made.KeyPEM, nil
}
