package certificates

import (
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"slices"
	"time"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	corev1 "k8s.io/api/core/v1"
)

// The keys of the Secret beside tls.crt and tls.key. All but the last three are
// as cert-controller has them.
const (
	authorityCert     = "ca.crt"
	authorityKey      = "ca.key"
	nextAuthorityCert = "next-ca.crt"
	nextAuthorityKey  = "next-ca.key"
	previousCert      = "previous-ca.crt"
)

// pemCertificate is the type of a certificate's PEM block.
const pemCertificate = "CERTIFICATE"

// serverUsage is what a pair is for.
var serverUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}

// authority is a CA. Without its key it can be trusted, but cannot sign.
type authority = rotator.KeyPairArtifacts

// pair is a serving certificate that an authority vouches for.
type pair struct {
	certificate, key []byte
	serving          tls.Certificate
	authority        *x509.Certificate
}

// expiry is when the pair stops being of use, were its authority immortal.
func (p *pair) expiry() time.Time { return p.serving.Leaf.NotAfter }

// held is what the Secret holds, as far as it can be used at one time: what is
// broken, expired or not yet valid is as if it were not there.
type held struct {
	// previous are trusted still, for who serves what they signed.
	previous []*x509.Certificate
	// current signs, if it has a key.
	current *authority
	// next is trusted already, and will sign.
	next *authority
	pair *pair
}

// read takes in what the Secret holds. Where it has lost its CA, what is
// published stands in for that.
func read(data map[string][]byte, published trust, dnsName string, now time.Time) held {
	h := held{
		previous: validOf(certificatesOf(data[previousCert]), now),
		current:  authorityOf(data[authorityCert], data[authorityKey], now),
		next:     authorityOf(data[nextAuthorityCert], data[nextAuthorityKey], now),
	}
	if h.next != nil && h.next.Key == nil {
		h.next = nil // it will never sign
	}
	if h.current == nil {
		h.previous = published.stillUsed(h, now)
	}
	for _, ca := range slices.Backward(h.authorities()) {
		if p := pairOf(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey], ca, dnsName, now); p != nil {
			h.pair = p
			break
		}
	}
	return h
}

// write gives the data of a Secret that holds this. Keys of others stay.
func (h held) write(data map[string][]byte) map[string][]byte {
	written := maps.Clone(data)
	if written == nil {
		written = map[string][]byte{}
	}
	set := func(key string, value []byte) {
		if len(value) == 0 {
			delete(written, key)
			return
		}
		written[key] = value
	}
	current, next, serving := h.current, h.next, h.pair
	if current == nil {
		current = &authority{}
	}
	if next == nil {
		next = &authority{}
	}
	if serving == nil {
		serving = &pair{}
	}
	set(previousCert, encode(h.previous))
	set(authorityCert, current.CertPEM)
	set(authorityKey, current.KeyPEM)
	set(nextAuthorityCert, next.CertPEM)
	set(nextAuthorityKey, next.KeyPEM)
	set(corev1.TLSCertKey, serving.certificate)
	set(corev1.TLSPrivateKeyKey, serving.key)
	return written
}

// authorities are those to trust, each once, the oldest first.
func (h held) authorities() []*x509.Certificate {
	all := slices.Clone(h.previous)
	for _, a := range []*authority{h.current, h.next} {
		if a != nil {
			all = append(all, a.Cert)
		}
	}
	var once []*x509.Certificate
	for _, certificate := range all {
		if !slices.ContainsFunc(once, certificate.Equal) {
			once = append(once, certificate)
		}
	}
	return once
}

// authorityOf takes in a CA; nil if it is of no use. A key that is not of its
// certificate, or with which nothing valid can be signed, is left out.
func authorityOf(certificate, key []byte, now time.Time) *authority {
	certificates := validOf(certificatesOf(certificate), now)
	if len(certificates) == 0 {
		return nil
	}
	a := &authority{Cert: certificates[0], CertPEM: encode(certificates[:1])}
	if ok, err := rotator.ValidCert(a.CertPEM, a.CertPEM, key, authorityName, nil, now); err != nil || !ok {
		return a
	}
	if private := privateKeyOf(key); private != nil {
		a.Key, a.KeyPEM = private, key
	}
	return a
}

// privateKeyOf reads a key as cert-controller writes it.
func privateKeyOf(key []byte) *rsa.PrivateKey {
	block, _ := pem.Decode(key)
	if block == nil {
		return nil
	}
	private, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		return nil
	}
	return private
}

// pairOf takes in a pair; nil if who trusts the authority would not take it.
func pairOf(certificate, key []byte, ca *x509.Certificate, dnsName string, now time.Time) *pair {
	if ok, err := rotator.ValidCert(encode([]*x509.Certificate{ca}), certificate, key, dnsName, &serverUsage, now); err != nil || !ok {
		return nil
	}
	serving, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil
	}
	return &pair{certificate: certificate, key: key, serving: serving, authority: ca}
}

// certificatesOf reads the CAs of a text and passes over everything else.
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

// validOf leaves out what has expired, and what is not valid yet.
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
