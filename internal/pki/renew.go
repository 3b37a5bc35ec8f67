package pki

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"time"
)

// step is a change of the certificates.
type step string

const (
	nextMade step = "made the next CA"
	promoted step = "made the next CA the current one"
	signed   step = "made a serving certificate"
)

// renew makes what is due. It takes the published CAs from the configuration and not from
// the Secret: a CA signs only when the API servers trust it.
func (o Options) renew(c secretContents, published trust, now time.Time) (_ secretContents, done []step, err error) {
	if c.next == nil && o.authorityIsDue(c.current, now) {
		if c.next, err = NewCA(o.authorityName(), now, o.CAValidity); err != nil {
			return c, nil, fmt.Errorf("make a CA: %w", err)
		}
		done = append(done, nextMade)
	}
	if c.next != nil && o.mayPromote(c, published, now) {
		// The other replicas serve a certificate of the former CA until they have read the Secret.
		if c.current != nil {
			c.previous = []*x509.Certificate{c.current.Leaf}
		}
		c.current, c.next = c.next, nil
		done = append(done, promoted)
	}
	if o.servingIsDue(c, now) {
		c.serving, err = c.current.Issue(&x509.Certificate{
			Subject:     pkix.Name{CommonName: o.dnsName()},
			DNSNames:    []string{o.dnsName()},
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}, now, o.Validity)
		if err != nil {
			return c, nil, fmt.Errorf("make a serving certificate: %w", err)
		}
		c.serving.authority = c.current.Leaf
		done = append(done, signed)
	}
	return c, done, nil
}

// authorityIsDue reports whether to replace the CA. An administrator requests that by
// removing its key.
func (o Options) authorityIsDue(ca *Pair, now time.Time) bool {
	return ca == nil || ca.PrivateKey == nil || ca.Leaf.NotAfter.Sub(now) <= o.CAValidity/3
}

// mayPromote reports whether the next CA may sign: when all API servers trust it, or when
// they trust no other, so that waiting has no use.
func (o Options) mayPromote(c secretContents, published trust, now time.Time) bool {
	if c.current == nil && len(c.previous) == 0 {
		return true
	}
	since, ok := published.seen[string(c.next.Leaf.Raw)]
	return ok && now.Sub(since) >= o.Overlap
}

// servingIsDue reports whether to make a serving certificate, and whether that is possible.
func (o Options) servingIsDue(c secretContents, now time.Time) bool {
	if c.current == nil || c.current.PrivateKey == nil {
		return false
	}
	return c.serving == nil || !c.serving.authority.Equal(c.current.Leaf) || c.serving.IsDue(c.current.Leaf, o.Validity/3, now)
}

// due returns the time until something is due, if nothing changes before. That is an hour at most, because
// clocks may be set, and timers do not count the time in which a machine sleeps.
func (o Options) due(c secretContents, published trust, now time.Time) time.Duration {
	var times []time.Time
	for _, ca := range c.authorities() {
		times = append(times, ca.NotAfter, ca.NotAfter.Add(-o.CAValidity/3))
	}
	if c.serving != nil {
		times = append(times, c.serving.Leaf.NotAfter, c.serving.Leaf.NotAfter.Add(-o.Validity/3))
	}
	if c.next != nil {
		if since, ok := published.seen[string(c.next.Leaf.Raw)]; ok {
			times = append(times, since.Add(o.Overlap))
		}
	}
	wait := time.Hour
	for _, at := range times {
		if at.After(now) { // what is past due does not wait for time
			wait = min(wait, at.Sub(now))
		}
	}
	return wait
}
