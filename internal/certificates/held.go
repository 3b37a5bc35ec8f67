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

	"github.com/krake-observer/krake-observer/pkg/manifest"
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

const authorityOrganization = manifest.Domain

// serverUsage is the usage of a pair.
var serverUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}

// authority is a CA. Without its key it can be trusted, but cannot sign.
type authority = rotator.KeyPairArtifacts

// pair is a serving certificate that an authority has signed.
type pair struct {
	certificate, key []byte
	serving          tls.Certificate
	authority        *x509.Certificate
}

// expiry returns when the pair expires, without regard to its authority.
func (p *pair) expiry() time.Time { return p.serving.Leaf.NotAfter }

// held has the usable contents of the Secret at one time. What is broken, expired or not
// yet valid is left out.
type held struct {
	// previous are still trusted, for replicas that serve a certificate of them.
	previous []*x509.Certificate
	// current signs, if it has a key.
	current *authority
	// next is trusted already, and will sign.
	next *authority
	pair *pair
}

// read returns the contents of the Secret. If the Secret has lost its CA, the published
// CAs replace it.
func read(data map[string][]byte, published trust, options Options, now time.Time) held {
	h := held{
		previous: validOf(certificatesOf(data[previousCert]), now),
		current:  authorityOf(data[authorityCert], data[authorityKey], options.authorityName(), now),
		next:     authorityOf(data[nextAuthorityCert], data[nextAuthorityKey], options.authorityName(), now),
	}
	if h.next != nil && h.next.Key == nil {
		h.next = nil // it will never sign
	}
	if h.current == nil {
		h.previous = h.stillUsed(published, now)
	}
	for _, ca := range slices.Backward(h.authorities()) {
		if p := pairOf(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey], ca, options.dnsName(), now); p != nil {
			h.pair = p
			break
		}
	}
	return h
}

// stillUsed returns the CAs to keep while the Secret has none: the previous ones, and
// those that are published. Replicas may still serve certificates of them.
func (h held) stillUsed(published trust, now time.Time) []*x509.Certificate {
	used := slices.Clone(h.previous)
	for _, ca := range validOf(slices.Clone(published.any), now) {
		isNext := h.next != nil && h.next.Cert.Equal(ca)
		if !isNext && !slices.ContainsFunc(used, ca.Equal) {
			used = append(used, ca)
		}
	}
	return used
}

// write returns the data of a Secret with these contents. Keys of others stay.
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

// authorities returns the CAs to trust, each once, the oldest first.
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

// authorityOf parses a CA; nil if it is unusable. It leaves out a key that does not match
// the certificate, or that cannot sign anything valid. A CA of another name cannot sign.
func authorityOf(certificate, key []byte, name string, now time.Time) *authority {
	certificates := validOf(certificatesOf(certificate), now)
	if len(certificates) == 0 {
		return nil
	}
	a := &authority{Cert: certificates[0], CertPEM: encode(certificates[:1])}
	if ok, err := rotator.ValidCert(a.CertPEM, a.CertPEM, key, name, nil, now); err != nil || !ok {
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

// pairOf parses a pair; nil if a client that trusts the authority would refuse it.
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
