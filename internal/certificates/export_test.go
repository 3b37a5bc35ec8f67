package certificates

import (
	"crypto/x509"
	"time"
)

// TrustedSince is since when the Keeper has seen the configuration trust the CA.
func (k *Keeper) TrustedSince(ca *x509.Certificate) (time.Time, bool) {
	return k.published.Load().since(ca)
}
