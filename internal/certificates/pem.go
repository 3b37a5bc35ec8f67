package certificates

import (
	"crypto/x509"
	"encoding/pem"
	"slices"
	"time"
)

// pemCertificate is the type of a certificate's PEM block.
const pemCertificate = "CERTIFICATE"

// certificatesOf reads the CAs of a text and ignores everything else.
func certificatesOf(text []byte) []*x509.Certificate {
	var all []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != pemCertificate {
			continue
		}
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil && certificate.IsCA {
			all = append(all, certificate)
		}
	}
	return all
}

// validOf removes the certificates that have expired or are not valid yet.
func validOf(certificates []*x509.Certificate, now time.Time) []*x509.Certificate {
	return slices.DeleteFunc(certificates, func(c *x509.Certificate) bool {
		return now.Before(c.NotBefore) || !now.Before(c.NotAfter)
	})
}

func encode(certificates []*x509.Certificate) []byte {
	var text []byte
	for _, certificate := range certificates {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: certificate.Raw})...)
	}
	return text
}
