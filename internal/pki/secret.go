package pki

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/krake-observer/krake-observer/internal/apierror"
)

// UpdateSecret reads a Secret that all replicas share, and writes the data that renew returns, if
// they differ. The error is a conflict if another client has written the Secret meanwhile.
func UpdateSecret(ctx context.Context, secrets corev1client.SecretsGetter, name types.NamespacedName, fieldManager string,
	renew func(data map[string][]byte) (map[string][]byte, error),
) (changed bool, err error) {
	secret, err := secrets.Secrets(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
	if err != nil {
		return false, fmt.Errorf("read the Secret %s: %w", name, err)
	}
	data, err := renew(secret.Data)
	if err != nil || maps.EqualFunc(data, secret.Data, slices.Equal) {
		return false, err
	}
	secret.Data = data
	if _, err := secrets.Secrets(name.Namespace).Update(ctx, secret, metav1.UpdateOptions{FieldManager: fieldManager}); err != nil {
		return false, fmt.Errorf("write the Secret %s: %w", name, apierror.Scrub(err)) // the answer may repeat keys
	}
	return true, nil
}

// The keys of a webhook's Secret beside tls.crt and tls.key.
const (
	authorityCert     = "ca.crt"
	authorityKey      = "ca.key"
	nextAuthorityCert = "next-ca.crt"
	nextAuthorityKey  = "next-ca.key"
	previousCert      = "previous-ca.crt"
)

// secretContents are the usable contents of a webhook's Secret at one time. What is broken,
// expired or not yet valid is left out.
type secretContents struct {
	// previous are still trusted, for replicas that serve a certificate of them.
	previous []*x509.Certificate
	// current signs, if it has a key. next is trusted already, and will sign.
	current, next *Pair
	serving       *Pair
}

// readSecret returns the contents of the Secret. If the Secret has lost its CA, the published
// CAs replace it: replicas may still serve certificates of them.
func readSecret(data map[string][]byte, published trust, options Options, now time.Time) secretContents {
	c := secretContents{
		previous: validOf(parseBundle(data[previousCert]), now),
		current:  readCA(data[authorityCert], data[authorityKey], options.authorityName(), now),
		next:     readCA(data[nextAuthorityCert], data[nextAuthorityKey], options.authorityName(), now),
	}
	if c.next != nil && c.next.PrivateKey == nil {
		c.next = nil // it will never sign
	}
	if c.current == nil {
		c.previous = slices.DeleteFunc(unique(slices.Concat(c.previous, validOf(published.any, now))), func(ca *x509.Certificate) bool {
			return c.next != nil && c.next.Leaf.Equal(ca)
		})
	}
	if pair, err := ParsePair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey]); err == nil { // or it is made anew
		for _, ca := range c.authorities() {
			if pair.IsValid(ca, x509.ExtKeyUsageServerAuth, options.dnsName(), now) {
				pair.authority, c.serving = ca, pair
			}
		}
	}
	return c
}

// readCA returns a CA, nil if it is unusable. It leaves out a key that does not match, and
// that of a CA with another name.
func readCA(certificate, key []byte, name string, now time.Time) *Pair {
	valid := validOf(parseBundle(certificate), now)
	if len(valid) == 0 {
		return nil
	}
	trusted := &Pair{Certificate: tls.Certificate{Leaf: valid[0]}, CertPEM: Encode(valid[0])}
	if ca, err := ParseCA(trusted.CertPEM, key, name, now); err == nil && ca.IsOurs(name) {
		return ca
	}
	return trusted
}

// write returns the data of a Secret with these contents. Keys of others stay.
func (c secretContents) write(data map[string][]byte) map[string][]byte {
	written := map[string][]byte{}
	maps.Copy(written, data)
	current, next, serving := cmp.Or(c.current, &Pair{}), cmp.Or(c.next, &Pair{}), cmp.Or(c.serving, &Pair{})
	for key, value := range map[string][]byte{
		previousCert:  Encode(c.previous...),
		authorityCert: current.CertPEM, authorityKey: current.KeyPEM,
		nextAuthorityCert: next.CertPEM, nextAuthorityKey: next.KeyPEM,
		corev1.TLSCertKey: serving.CertPEM, corev1.TLSPrivateKeyKey: serving.KeyPEM,
	} {
		written[key] = value
		if len(value) == 0 {
			delete(written, key)
		}
	}
	return written
}

// authorities returns the CAs to trust, each once, the oldest first.
func (c secretContents) authorities() []*x509.Certificate {
	all := slices.Clone(c.previous)
	for _, ca := range []*Pair{c.current, c.next} {
		if ca != nil {
			all = append(all, ca.Leaf)
		}
	}
	return unique(all)
}
