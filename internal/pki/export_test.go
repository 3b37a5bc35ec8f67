package pki

import (
	"crypto/x509"
	"time"
)

// TrustedSince returns the time since which the Keeper has seen the configuration trust the
// CA.
func (k *Keeper) TrustedSince(ca *x509.Certificate) (time.Time, bool) {
	since, ok := k.published.Load().seen[string(ca.Raw)]
	return since, ok
}
