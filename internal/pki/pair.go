package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// backdated is how far the clocks of clients may be behind ours.
const backdated = time.Hour

// Pair is a certificate and its key, in PEM and parsed. A CA without its key can be
// trusted, but cannot sign.
type Pair struct {
	tls.Certificate

	CertPEM, KeyPEM []byte
	// authority is the CA that has signed it, of a serving certificate.
	authority *x509.Certificate
}

// NewCA makes a CA.
func NewCA(name string, now time.Time, validity time.Duration) (*Pair, error) {
	return (*Pair)(nil).Issue(&x509.Certificate{
		Subject:        pkix.Name{CommonName: name, Organization: []string{manifest.Domain}},
		KeyUsage:       x509.KeyUsageCertSign,
		IsCA:           true,
		MaxPathLenZero: true,
	}, now, validity)
}

// Issue makes a key and a certificate from the template, which does not outlive this CA. If
// there is no CA, the certificate signs itself.
func (p *Pair) Issue(template *x509.Certificate, now time.Time, validity time.Duration) (*Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	template.BasicConstraintsValid = true
	template.KeyUsage |= x509.KeyUsageDigitalSignature
	template.NotBefore, template.NotAfter = now.Add(-backdated), now.Add(validity)
	parent, signer := template, crypto.PrivateKey(key)
	if p != nil {
		parent, signer = p.Leaf, p.PrivateKey
		template.NotAfter = now.Add(min(validity, p.Leaf.NotAfter.Sub(now)))
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return ParsePair(Encode(&x509.Certificate{Raw: der}), pem.EncodeToMemory(&pem.Block{Type: keyutil.PrivateKeyBlockType, Bytes: encoded}))
}

// ParsePair parses one certificate and its key, and accepts nothing else. Its errors repeat
// no part of the input.
func ParsePair(certificate, key []byte) (*Pair, error) {
	for _, part := range []struct {
		name string
		text []byte
	}{{"certificate", certificate}, {"key", key}} {
		if len(part.text) == 0 {
			return nil, fmt.Errorf("there is no %s", part.name)
		}
		if block, rest := pem.Decode(part.text); block == nil || len(rest) > 0 {
			return nil, fmt.Errorf("the %s is not one block of PEM", part.name)
		}
	}
	// The error of the library may quote the input.
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, errors.New("certificate and key cannot be read, or do not belong together")
	}
	return &Pair{Certificate: pair, CertPEM: certificate, KeyPEM: key}, nil
}

// ParseCA parses a CA that can sign. Unlike one of others, one that [NewCA] has made with
// this name may have expired.
func ParseCA(certificate, key []byte, name string, now time.Time) (*Pair, error) {
	ca, err := ParsePair(certificate, key)
	if err != nil {
		return nil, err
	}
	utc := func(at time.Time) string { return at.UTC().Format(time.RFC3339) }
	switch leaf := ca.Leaf; {
	case !leaf.BasicConstraintsValid || !leaf.IsCA || leaf.KeyUsage&x509.KeyUsageCertSign == 0:
		return nil, errors.New("the certificate is not that of a CA")
	case now.Before(leaf.NotBefore):
		return nil, fmt.Errorf("the CA is valid from %s on, and it is %s here", utc(leaf.NotBefore), utc(now))
	case !now.Before(leaf.NotAfter) && !ca.IsOurs(name):
		return nil, fmt.Errorf("the CA has expired on %s", utc(leaf.NotAfter))
	}
	return ca, nil
}

// IsOurs reports whether [NewCA] has made this CA with the name.
func (p *Pair) IsOurs(name string) bool {
	return p.Leaf.Subject.CommonName == name && slices.Equal(p.Leaf.Subject.Organization, []string{manifest.Domain})
}

// IsValid reports whether a CA has signed this certificate for the usage, and for the name of a server unless that is
// empty, and whether it is valid now.
func (p *Pair) IsValid(by *x509.Certificate, usage x509.ExtKeyUsage, dnsName string, now time.Time) bool {
	_, err := p.Leaf.Verify(x509.VerifyOptions{Roots: Pool(by), CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage}, DNSName: dnsName})
	return err == nil
}

// IsDue reports whether to replace this certificate, because no more than the rest of its time is left. One that expires
// with its CA stays, because a new one would not last longer.
func (p *Pair) IsDue(by *x509.Certificate, rest time.Duration, now time.Time) bool {
	return p.Leaf.NotAfter.Sub(now) <= rest && !p.Leaf.NotAfter.Equal(by.NotAfter)
}

// Pool returns a pool with one CA.
func Pool(ca *x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	return pool
}

// Encode returns certificates in PEM.
func Encode(certificates ...*x509.Certificate) []byte {
	var text []byte
	for _, certificate := range certificates {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: certificate.Raw})...)
	}
	return text
}

// parseBundle returns the CAs of a text. It ends at a certificate that is broken.
func parseBundle(text []byte) []*x509.Certificate {
	certificates, _ := certutil.ParseCertsPEM(text) // those before the error
	return slices.DeleteFunc(certificates, func(c *x509.Certificate) bool { return !c.IsCA })
}

// validOf returns the certificates that have not expired and are valid already.
func validOf(certificates []*x509.Certificate, now time.Time) []*x509.Certificate {
	return slices.DeleteFunc(slices.Clone(certificates), func(c *x509.Certificate) bool {
		return now.Before(c.NotBefore) || !now.Before(c.NotAfter)
	})
}

// unique returns each certificate once.
func unique(certificates []*x509.Certificate) (once []*x509.Certificate) {
	for _, certificate := range certificates {
		if !slices.ContainsFunc(once, certificate.Equal) {
			once = append(once, certificate)
		}
	}
	return once
}
