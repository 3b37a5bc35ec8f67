package certificates

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
)

// backdated is how far the API server's clock may be behind ours.
const backdated = time.Hour

// step is a change of the certificates.
type step string

const (
	nextMade step = "made the next CA"
	promoted step = "made the next CA the current one"
	signed   step = "made a serving certificate"
)

// issuer makes keys and signs certificates. It is a [rotator.CertRotator]; tests have
// one with smaller keys.
type issuer interface {
	CreateCACert(begin, end time.Time) (*authority, error)
	CreateCertPEM(ca *authority, begin, end time.Time) (certificate, key []byte, err error)
}

// signer makes certificates and knows how long they are valid.
type signer struct {
	issuer  issuer
	options Options
}

func newSigner(options Options) *signer {
	return &signer{options: options, issuer: &rotator.CertRotator{
		CAName:         options.authorityName(),
		CAOrganization: authorityOrganization,
		DNSName:        options.dnsName(),
		ExtKeyUsages:   &serverUsage,
	}}
}

// renew makes what is due. It takes the published CAs from the configuration and not from
// the Secret: a CA signs only when the API servers trust it.
func (s *signer) renew(h held, published trust, now time.Time) (held, []step, error) {
	var done []step
	if h.next == nil && s.authorityIsDue(h.current, now) {
		next, err := s.issuer.CreateCACert(now.Add(-backdated), now.Add(s.options.CAValidity))
		if err != nil {
			return h, nil, fmt.Errorf("make a CA: %w", err)
		}
		h.next, done = next, append(done, nextMade)
	}
	if h.next != nil && s.mayPromote(h, published, now) {
		h, done = h.promote(), append(done, promoted)
	}
	if s.pairIsDue(h, now) {
		made, err := s.sign(h.current, now)
		if err != nil {
			return h, nil, fmt.Errorf("make a serving certificate: %w", err)
		}
		h.pair, done = made, append(done, signed)
	}
	return h, done, nil
}

// authorityIsDue reports whether to replace the CA. An administrator requests that by
// removing its key.
func (s *signer) authorityIsDue(a *authority, now time.Time) bool {
	return a == nil || a.Key == nil || a.Cert.NotAfter.Sub(now) <= s.options.CAValidity/3
}

// mayPromote reports whether the next CA may sign: when all API servers trust it, or when
// they trust no other, so that waiting has no use.
func (s *signer) mayPromote(h held, published trust, now time.Time) bool {
	if h.current == nil && len(h.previous) == 0 {
		return true
	}
	since, ok := published.since(h.next.Cert)
	return ok && now.Sub(since) >= s.options.Overlap
}

// promote leaves the former CA trusted: the other replicas serve a certificate of it until
// they have read the Secret.
func (h held) promote() held {
	if h.current != nil {
		h.previous = []*x509.Certificate{h.current.Cert}
	}
	h.current, h.next = h.next, nil
	return h
}

// pairIsDue reports whether to make a pair, and whether that is possible.
func (s *signer) pairIsDue(h held, now time.Time) bool {
	if h.current == nil || h.current.Key == nil {
		return false
	}
	return h.pair == nil || !h.pair.authority.Equal(h.current.Cert) || h.pair.expiry().Sub(now) <= s.options.Validity/3
}

func (s *signer) sign(by *authority, now time.Time) (*pair, error) {
	certificate, key, err := s.issuer.CreateCertPEM(by, now.Add(-backdated), now.Add(s.options.Validity))
	if err != nil {
		return nil, err
	}
	made := pairOf(certificate, key, by.Cert, s.options.dnsName(), now)
	if made == nil {
		return nil, errors.New("the CA has not signed it")
	}
	return made, nil
}

// idle is the longest time without a check, because clocks may be set, and timers do not
// count the time in which a machine sleeps.
const idle = time.Hour

// due returns the time until something is due, if nothing changes before.
func (s *signer) due(h held, published trust, now time.Time) time.Duration {
	var times []time.Time
	for _, ca := range h.authorities() {
		times = append(times, ca.NotAfter)
	}
	if h.current != nil {
		times = append(times, h.current.Cert.NotAfter.Add(-s.options.CAValidity/3))
	}
	if h.pair != nil {
		times = append(times, h.pair.expiry(), h.pair.expiry().Add(-s.options.Validity/3))
	}
	if h.next != nil {
		if since, ok := published.since(h.next.Cert); ok {
			times = append(times, since.Add(s.options.Overlap))
		}
	}
	// What is past due does not wait for time.
	times = slices.DeleteFunc(times, func(at time.Time) bool { return !at.After(now) })
	wait := idle
	for _, at := range times {
		wait = min(wait, at.Sub(now))
	}
	return wait
}
