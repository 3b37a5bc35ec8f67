package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"time"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// authority signs the certificates of one cluster. Each cluster has its own, so that no
// program mistakes another cluster's server for this one's.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

// pair is a certificate and its key, in PEM.
type pair struct{ certificate, key []byte }

func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	certificate, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: name, NotBefore: anHourAgo()}, key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate of %s: %w", name, err)
	}
	text, err := certutil.EncodeCertificates(certificate)
	return &authority{certificate: certificate, key: key, pem: text}, err
}

// anHourAgo is the begin of the certificates' validity, because the clocks of virtual
// machines jump.
func anHourAgo() time.Time { return time.Now().Add(-time.Hour) }

// client returns a client certificate for a user.
func (a *authority) client(user string, groups ...string) (pair, error) {
	return a.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: user, Organization: groups}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

// server returns a certificate for a server with these addresses and names.
func (a *authority) server(addresses []net.IP, names ...string) (pair, error) {
	return a.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: names[0]}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: addresses, DNSNames: names,
	})
}

// issue signs a certificate for a month: no cluster of this package lives longer.
func (a *authority) issue(template *x509.Certificate) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("generate key: %w", err)
	}
	template.NotBefore, template.NotAfter = anHourAgo(), time.Now().AddDate(0, 1, 0)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return pair{}, fmt.Errorf("sign certificate of %s: %w", template.Subject.CommonName, err)
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	return pair{certificate: pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: der}), key: encoded}, err
}

// write writes the files PATH.crt and PATH.key.
func (p pair) write(path string) error {
	return errors.Join(certutil.WriteCert(path+".crt", p.certificate), keyutil.WriteKey(path+".key", p.key))
}
