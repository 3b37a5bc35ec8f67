package certificates

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"time"
)

// TrustedSince returns the time since which the Keeper has seen the configuration trust the
// CA.
func (k *Keeper) TrustedSince(ca *x509.Certificate) (time.Time, bool) {
	return k.published.Load().since(ca)
}

// UseSmallKeys makes the Keeper create small keys. Call it before the start.
func (k *Keeper) UseSmallKeys() { k.signer.issuer = smallKeysFor(k.signer.options) }

// smallKeys issues the same as the rotator, but with keys of 1024 bits: keys of 2048 bits took
// most of the time of these tests. TestTheFirstStart uses the rotator.
type smallKeys struct{ dnsName, authorityName string }

func smallKeysFor(o Options) smallKeys { return smallKeys{o.dnsName(), o.authorityName()} }

func (s smallKeys) CreateCACert(begin, end time.Time) (*authority, error) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(0),
		Subject:      pkix.Name{CommonName: s.authorityName, Organization: []string{authorityOrganization}},
		DNSNames:     []string{s.authorityName},
		NotBefore:    begin, NotAfter: end,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	made := &authority{Cert: template}
	return made, issue(made, template, made)
}

func (s smallKeys) CreateCertPEM(ca *authority, begin, end time.Time) (certificate, key []byte, err error) {
	made := &authority{}
	err = issue(made, &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: s.dnsName},
		DNSNames:     []string{s.dnsName},
		NotBefore:    begin, NotAfter: end,
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage:           serverUsage,
		BasicConstraintsValid: true,
	}, ca)
	return made.CertPEM, made.KeyPEM, err
}

func issue(made *authority, template *x509.Certificate, by *authority) (err error) {
	if made.Key, err = rsa.GenerateKey(rand.Reader, 1024); err != nil { //nolint:gosec // nothing trusts it outside of the tests
		return err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.Cert, made.Key.Public(), by.Key)
	if err != nil {
		return err
	}
	if made.Cert, err = x509.ParseCertificate(der); err != nil {
		return err
	}
	made.CertPEM = encode([]*x509.Certificate{made.Cert})
	made.KeyPEM = pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(made.Key)})
	return nil
}
