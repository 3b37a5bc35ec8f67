package hooks

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
	"math/big"
	"time"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

const (
	authorityName         = "krake-hooks-ca"
	authorityOrganization = manifest.Domain

	year = 365 * 24 * time.Hour
	// authorityValidity is how long a CA is valid. One of ours is replaced when
	// authorityRest is left.
	authorityValidity = 10 * year
	authorityRest     = 30 * 24 * time.Hour
	// backdated is how far the clocks of Pods may be behind ours.
	backdated = time.Hour

	pemCertificate = "CERTIFICATE"
	pemPrivateKey  = "PRIVATE KEY"
)

// authority is a CA that can sign.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
	bundle      []byte
	pool        *x509.CertPool
}

// newAuthority makes a CA, and returns its certificate and its key in the stored form.
func newAuthority(now time.Time) (certificate, key []byte, err error) {
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make the key of a CA: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber:          serial(),
		Subject:               pkix.Name{CommonName: authorityName, Organization: []string{authorityOrganization}},
		NotBefore:             now.Add(-backdated),
		NotAfter:              now.Add(authorityValidity),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, signer.Public(), signer)
	if err != nil {
		return nil, nil, fmt.Errorf("make a CA: %w", err)
	}
	return encodePair(der, signer)
}

// parseAuthority parses a CA. Its errors repeat no part of the input.
func parseAuthority(certificate, key []byte, now time.Time) (*authority, error) {
	pair, err := parsePair(certificate, key)
	if err != nil {
		return nil, err
	}
	leaf := pair.Leaf
	signer, signs := pair.PrivateKey.(crypto.Signer)
	switch {
	case !signs:
		return nil, errors.New("the key cannot sign")
	case !leaf.BasicConstraintsValid || !leaf.IsCA || leaf.KeyUsage&x509.KeyUsageCertSign == 0:
		return nil, errors.New("the certificate is not that of a CA")
	case now.Before(leaf.NotBefore):
		return nil, fmt.Errorf("the CA is valid from %s on, and it is %s here", leaf.NotBefore.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	case !now.Before(leaf.NotAfter) && !isOurs(leaf):
		return nil, fmt.Errorf("the CA has expired on %s", leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	a := &authority{certificate: leaf, key: signer, pool: x509.NewCertPool()}
	a.bundle = pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: leaf.Raw})
	a.pool.AddCert(leaf)
	return a, nil
}

// isDue reports whether to replace the CA. A CA that this program did not make is never
// replaced.
func (a *authority) isDue(now time.Time) bool {
	return isOurs(a.certificate) && a.certificate.NotAfter.Sub(now) <= authorityRest
}

func isOurs(ca *x509.Certificate) bool {
	return ca.Subject.CommonName == authorityName && len(ca.Subject.Organization) == 1 && ca.Subject.Organization[0] == authorityOrganization
}

// sign makes a key, and a certificate from the template. The certificate does not outlive
// its CA.
func (a *authority) sign(template *x509.Certificate, now time.Time, validity time.Duration) (certificate, key []byte, err error) {
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a key: %w", err)
	}
	template.SerialNumber = serial()
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.BasicConstraintsValid = true
	template.NotBefore, template.NotAfter = now.Add(-backdated), now.Add(validity)
	if template.NotAfter.After(a.certificate.NotAfter) {
		template.NotAfter = a.certificate.NotAfter
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, signer.Public(), a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("sign: %w", err)
	}
	return encodePair(der, signer)
}

// keeps reports whether a certificate can stay: the CA has signed it for the usage, it
// is valid, and more than a third of its time is left. One that expires with the CA
// also stays, because a new one would not last longer.
func (a *authority) keeps(certificate *x509.Certificate, usage x509.ExtKeyUsage, now time.Time) bool {
	if _, err := certificate.Verify(x509.VerifyOptions{Roots: a.pool, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
		return false
	}
	left, whole := certificate.NotAfter.Sub(now), certificate.NotAfter.Sub(certificate.NotBefore)
	return left > whole/3 || certificate.NotAfter.Equal(a.certificate.NotAfter)
}

// serial returns 127 random bits. The standard requires a positive number of at most 20
// bytes.
func serial() *big.Int {
	var bytes [16]byte
	rand.Read(bytes[:]) // never fails, as of its documentation
	bytes[0] = bytes[0]&0x7f | 0x40
	return new(big.Int).SetBytes(bytes[:])
}

func encodePair(der []byte, signer crypto.Signer) (certificate, key []byte, err error) {
	encoded, err := x509.MarshalPKCS8PrivateKey(signer)
	if err != nil {
		return nil, nil, fmt.Errorf("encode a key: %w", err)
	}
	certificate = pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: der})
	return certificate, pem.EncodeToMemory(&pem.Block{Type: pemPrivateKey, Bytes: encoded}), nil
}

// parsePair parses one certificate and its key, and accepts nothing else.
func parsePair(certificate, key []byte) (*tls.Certificate, error) {
	if err := checkPEM("certificate", certificate); err != nil {
		return nil, err
	}
	if err := checkPEM("key", key); err != nil {
		return nil, err
	}
	// The error of the library may quote the input.
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, errors.New("certificate and key cannot be read, or do not belong together")
	}
	return &pair, nil
}

// checkPEM returns an error unless the text is one block.
func checkPEM(what string, text []byte) error {
	if len(text) == 0 {
		return fmt.Errorf("there is no %s", what)
	}
	block, rest := pem.Decode(text)
	if block == nil || len(rest) > 0 {
		return fmt.Errorf("the %s is not one block of PEM", what)
	}
	return nil
}
