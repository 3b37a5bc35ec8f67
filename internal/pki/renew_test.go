package pki

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

const (
	day  = 24 * time.Hour
	year = 365 * day
)

// born is the creation time of the certificates in these tests, which do not depend on the
// present time.
var born = time.Date(2031, time.February, 3, 4, 5, 6, 0, time.UTC)

// options returns the defaults, for the shipped names.
func options() Options {
	return Options{ //nolint:gosec // the name of a Secret is none
		Name:      "krake-webhook",
		Namespace: "krake-system", Service: "krake-webhook", Secret: "krake-webhook-certificate", Configuration: "krake-webhook",
		Validity: 90 * day, CAValidity: 5 * year, Overlap: 30 * time.Second,
	}
}

// fixtures are named CAs, and certificates that some of them have signed.
type fixtures struct {
	t     *testing.T
	named map[string]*Pair
}

func newFixtures(t *testing.T) *fixtures {
	t.Helper()
	named, err := authorities()
	kit.Must(t, err)
	return &fixtures{t: t, named: named}
}

// authorities creates the CAs once for all tests.
var authorities = sync.OnceValues(func() (map[string]*Pair, error) {
	named := map[string]*Pair{}
	for name, at := range map[string]time.Time{"A": born, "B": born, "C": born, "late": born.Add(4 * year)} {
		made, err := NewCA(options().authorityName(), at, 5*year)
		if err != nil {
			return nil, err
		}
		named[name] = made
	}
	return named, nil
})

// issue returns a pair that the CA has signed.
func (f *fixtures) issue(by string, at time.Time, dnsName string) *Pair {
	f.t.Helper()
	pair, err := f.named[by].Issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: dnsName}, DNSNames: []string{dnsName}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, at, 90*day)
	kit.Must(f.t, err)
	pair.authority = f.named[by].Leaf
	return pair
}

// pair returns the data of a pair that the CA has signed.
func (f *fixtures) pair(by string, at time.Time, dnsName string) map[string][]byte {
	f.t.Helper()
	pair := f.issue(by, at, dnsName)
	return map[string][]byte{corev1.TLSCertKey: pair.CertPEM, corev1.TLSPrivateKeyKey: pair.KeyPEM}
}

// name returns the name of a CA. An unknown CA gets a new name.
func (f *fixtures) name(ca *x509.Certificate) string {
	for name, known := range f.named {
		if known.Leaf.Equal(ca) {
			return name
		}
	}
	return "new"
}

func (f *fixtures) describe(c secretContents, formerPair []byte) string {
	var words []string
	for _, ca := range c.previous {
		words = append(words, "previous "+f.name(ca))
	}
	for i, a := range []*Pair{c.current, c.next} {
		if a == nil {
			continue
		}
		text := []string{"current ", "next "}[i] + f.name(a.Leaf)
		if a.PrivateKey == nil {
			text += " without key"
		}
		words = append(words, text)
	}
	if c.serving != nil {
		text := "new pair by "
		if string(c.serving.CertPEM) == string(formerPair) {
			text = "pair by "
		}
		words = append(words, text+f.name(c.serving.authority))
	}
	return strings.Join(words, ", ")
}

func merge(parts ...map[string][]byte) map[string][]byte {
	all := map[string][]byte{}
	for _, part := range parts {
		maps.Copy(all, part)
	}
	return all
}

func without(data map[string][]byte, keys ...string) map[string][]byte {
	less := maps.Clone(data)
	for _, key := range keys {
		delete(less, key)
	}
	return less
}

// The next step for each state of the Secret and of the published bundle, at a time.
func TestRenew(t *testing.T) {
	f := newFixtures(t)
	ca := func(name string) map[string][]byte {
		return map[string][]byte{authorityCert: f.named[name].CertPEM, authorityKey: f.named[name].KeyPEM}
	}
	next := func(name string) map[string][]byte {
		return map[string][]byte{nextAuthorityCert: f.named[name].CertPEM, nextAuthorityKey: f.named[name].KeyPEM}
	}
	previous := func(name string) map[string][]byte {
		return map[string][]byte{previousCert: f.named[name].CertPEM}
	}
	const dnsName = "krake-webhook.krake-system.svc"
	pairA := f.pair("A", born, dnsName)
	pairB := f.pair("B", born, dnsName)
	usual := merge(ca("A"), pairA)
	rotating := merge(usual, next("B"))
	rubbish := map[string][]byte{}
	for _, key := range []string{authorityCert, authorityKey, nextAuthorityCert, nextAuthorityKey, previousCert, corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		rubbish[key] = []byte("-----BEGIN CERTIFICATE-----\nrubbish\n-----END CERTIFICATE-----\n")
	}
	type published map[string]time.Duration // the time since each was first seen

	for _, c := range []struct {
		name      string
		data      map[string][]byte
		published published
		at        time.Duration // since the creation of the certificates
		steps     []step
		want      string
		due       time.Duration // 0: an hour
	}{
		{"the first start: the Secret is empty, and nobody waits for anything", nil, nil, 0,
			[]step{nextMade, promoted, signed}, "current new, new pair by new", 0},
		{"all is well", usual, published{"A": day}, day, nil, "current A, pair by A", 0},
		{"a pair is good for two thirds of its life", usual, published{"A": day}, 60*day - time.Minute, nil, "current A, pair by A", time.Minute},
		{"then it is renewed", usual, published{"A": day}, 60 * day, []step{signed}, "current A, new pair by A", 0},
		{"a pair that expired while nobody ran", usual, published{"A": time.Second}, 100 * day, []step{signed}, "current A, new pair by A", 0},
		{"the last second of a pair that cannot be renewed", without(rotating, authorityKey), published{"A": day}, 90*day - time.Second,
			nil, "current A without key, next B, pair by A", time.Second},
		{"a clock that goes back within the hour", usual, published{"A": day}, -30 * time.Minute, nil, "current A, pair by A", 0},
		{"somebody asks for a new pair", without(usual, corev1.TLSCertKey), published{"A": day}, day, []step{signed}, "current A, new pair by A", 0},
		{"a pair without its key", without(usual, corev1.TLSPrivateKeyKey), published{"A": day}, day, []step{signed}, "current A, new pair by A", 0},
		{"a pair with the key of another", merge(usual, map[string][]byte{corev1.TLSPrivateKeyKey: pairB[corev1.TLSPrivateKeyKey]}), published{"A": day}, day,
			[]step{signed}, "current A, new pair by A", 0},
		{"a pair of another CA", merge(usual, pairB), published{"A": day}, day, []step{signed}, "current A, new pair by A", 0},
		{"a pair for another Service", merge(usual, f.pair("A", born, "other.krake-system.svc")), published{"A": day}, day,
			[]step{signed}, "current A, new pair by A", 0},

		{"a CA is good for two thirds of its life", merge(ca("A"), f.pair("A", born.Add(3*year), dnsName)), published{"A": day}, 5*year - 5*year/3 - time.Minute,
			[]step{signed}, "current A, new pair by A", time.Minute},
		{"then there is to be another, which nobody trusts yet", usual, published{"A": day}, 5*year - 5*year/3,
			[]step{nextMade, signed}, "current A, next new, new pair by A", 0},
		{"a CA that expired while nobody ran: nobody trusts another", usual, published{"A": day}, 6 * year,
			[]step{nextMade, promoted, signed}, "current new, new pair by new", 0},
		{"nor does anybody when the next one was made in time", merge(usual, next("late")), published{"A": day, "late": 5 * time.Second}, 6 * year,
			[]step{promoted, signed}, "current late, new pair by late", 0},
		{"a previous one that expired", merge(ca("late"), previous("A")), published{"A": day, "late": day}, 6 * year,
			[]step{signed}, "current late, new pair by late", 0},

		{"somebody asks for a new CA", without(usual, authorityKey), published{"A": day}, day, []step{nextMade}, "current A without key, next new, pair by A", 0},
		{"a CA with the key of another", merge(usual, map[string][]byte{authorityKey: f.named["B"].KeyPEM}), published{"A": day}, day,
			[]step{nextMade}, "current A without key, next new, pair by A", 0},
		{"no key for a pair that is missing: it waits for the next CA", without(usual, authorityKey, corev1.TLSCertKey), published{"A": day}, day,
			[]step{nextMade}, "current A without key, next new", 0},
		{"the next CA is not published", rotating, published{"A": day}, day, nil, "current A, next B, pair by A", 0},
		{"the next CA has just been published", rotating, published{"A": day, "B": 0}, day, nil, "current A, next B, pair by A", 30 * time.Second},
		{"some API server may not have seen it yet", rotating, published{"A": day, "B": 29 * time.Second}, day, nil, "current A, next B, pair by A", time.Second},
		{"all have seen it", rotating, published{"A": day, "B": 30 * time.Second}, day, []step{promoted, signed}, "previous A, current B, new pair by B", 0},
		{"the one before the previous is forgotten", merge(rotating, previous("C")), published{"A": day, "B": time.Minute, "C": day}, day,
			[]step{promoted, signed}, "previous A, current B, new pair by B", 0},
		{"a pair is renewed during the wait", without(rotating, corev1.TLSCertKey), published{"A": day, "B": time.Second}, day,
			[]step{signed}, "current A, next B, new pair by A", 29 * time.Second},
		{"a next CA without its key will never sign", without(rotating, nextAuthorityKey), published{"A": day, "B": day}, day, nil, "current A, pair by A", 0},
		{"and is replaced if one is wanted", without(rotating, nextAuthorityKey, authorityKey), published{"A": day, "B": day}, day,
			[]step{nextMade}, "current A without key, next new, pair by A", 0},

		{"somebody takes the CA out: the replicas still serve what it signed", without(usual, authorityCert, authorityKey), published{"A": day}, day,
			[]step{nextMade}, "previous A, next new, pair by A", 0},
		{"somebody empties the Secret", nil, published{"A": day, "B": day}, day, []step{nextMade}, "previous A, previous B, next new", 0},
		{"or fills it with rubbish", rubbish, published{"A": day}, day, []step{nextMade}, "previous A, next new", 0},
		{"the wait is the same then", merge(previous("A"), next("B")), published{"A": day, "B": time.Second}, day, nil, "previous A, next B", 29 * time.Second},
		{"and the end of it", merge(previous("A"), next("B")), published{"A": day, "B": time.Minute}, day, []step{promoted, signed}, "previous A, current B, new pair by B", 0},
		{"rubbish, and nobody trusts anything", rubbish, nil, day, []step{nextMade, promoted, signed}, "current new, new pair by new", 0},
		{"a configuration that was left by a former installation: what it has may be in use", nil, published{"C": 0}, day,
			[]step{nextMade}, "previous C, next new", 0},
		{"and one whose CA has expired", nil, published{"C": 0}, 6 * year, []step{nextMade, promoted, signed}, "current new, new pair by new", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			now := born.Add(c.at)
			seen := trust{seen: map[string]time.Time{}}
			for _, name := range slices.Sorted(maps.Keys(c.published)) {
				seen.any = append(seen.any, f.named[name].Leaf)
				seen.seen[string(f.named[name].Leaf.Raw)] = now.Add(-c.published[name])
			}
			given := maps.Clone(c.data)
			got, steps, err := options().renew(readSecret(c.data, seen, options(), now), seen, now)
			kit.Must(t, err)
			check.Equal(t, "steps", c.steps, steps)
			check.Equal(t, "contents", c.want, f.describe(got, c.data[corev1.TLSCertKey]))
			if c.due == 0 {
				c.due = time.Hour
			}
			check.Equal(t, "due in", c.due, options().due(got, seen, now))

			written := got.write(c.data)
			check.Equal(t, "what is written is read as", f.describe(got, nil), f.describe(readSecret(written, seen, options(), now), nil))
			check.Equal(t, "the argument was changed", given, c.data)
			again, steps, err := options().renew(readSecret(written, seen, options(), now), seen, now)
			if err != nil || len(steps) > 0 || f.describe(again, got.write(nil)[corev1.TLSCertKey]) != strings.ReplaceAll(f.describe(got, nil), "new pair", "pair") {
				t.Errorf("the second time: %v, %v, %s", err, steps, f.describe(again, nil))
			}
		})
	}
}

// A CA is created, trusted, current, only trusted, and finally removed. For any jumps of the
// clock, the served certificate is signed by a CA that has been trusted for the overlap. The
// exception is a state in which no valid CA is trusted.
func TestTheClockJumps(t *testing.T) {
	o := options()
	o.Validity, o.CAValidity, o.Overlap = time.Hour, 4*time.Hour, time.Minute
	jumps := []time.Duration{time.Second, time.Minute, 10 * time.Minute, time.Hour, 5 * time.Hour, -30 * time.Minute, -time.Minute}
	for i := range jumps {
		t.Run(fmt.Sprint("beginning with ", jumps[i]), func(t *testing.T) {
			now, data := born, map[string][]byte(nil)
			var published trust
			for step := range 3 * len(jumps) {
				now = now.Add(jumps[(i+step*(i+1))%len(jumps)])
				before := readSecret(data, published, o, now)
				renewed, steps, err := o.renew(before, published, now)
				kit.Must(t, err)
				if slices.Contains(steps, promoted) && (before.current != nil || len(before.previous) > 0) {
					since, ok := published.seen[string(renewed.current.Leaf.Raw)]
					if !ok || now.Sub(since) < o.Overlap {
						t.Errorf("step %d: promoted without having been trusted for %s", step, o.Overlap)
					}
				}
				check.Equal(t, fmt.Sprintf("step %d: there is a pair", step), true, renewed.serving != nil)
				data = renewed.write(data)
				published = published.observe(configured(renewed.authorities()), now)
			}
		})
	}
}

// newKeeper returns a Keeper without a cluster, whose clock stands at a time after born.
func newKeeper(t *testing.T, registry prometheus.Registerer, at time.Duration) *Keeper {
	t.Helper()
	gauge, err := expiryGauge(registry)
	kit.Must(t, err)
	k := &Keeper{options: options(), now: func() time.Time { return born.Add(at) }, logger: logr.Discard(), expiry: gauge}
	k.published.Store(&trust{})
	return k
}

// A replica knows whether API servers accept its pair, and reports it.
func TestReady(t *testing.T) {
	f := newFixtures(t)
	made := f.issue("A", born, options().dnsName())
	for _, c := range []struct {
		name    string
		serves  *Pair
		trusted string
		at      time.Duration
		want    string // the beginning of the message
	}{
		{"a pair whose CA is published", made, "A", 0, ""},
		{"until its last second", made, "A", 90*day - 1, ""},
		{"that expired", made, "A", 90 * day, "the serving certificate is valid from 2031-02-03 03:05:06 +0000 UTC to 2031-05-04 04:05:06"},
		{"that is not valid yet", made, "A", -2 * time.Hour, "the serving certificate is valid from 2031-02-03 03:05:06"},
		{"whose CA is not published", made, "B", 0, "the configuration does not trust the CA"},
		{"none", nil, "A", 0, "no serving certificate yet"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newKeeper(t, prometheus.NewRegistry(), c.at)
			published := trust{}.observe(configured([]*x509.Certificate{f.named[c.trusted].Leaf}), born)
			k.published.Store(&published)
			k.serve(c.serves)
			said := ""
			if err := k.Ready(nil); err != nil {
				said = err.Error()
			}
			if c.want == "" && said != "" || !strings.HasPrefix(said, c.want) {
				t.Errorf("said %q, want %q", said, c.want)
			}
		})
	}
}

// If there is no new pair to serve, the former one is still served.
func TestServe(t *testing.T) {
	f := newFixtures(t)
	k := newKeeper(t, prometheus.NewRegistry(), 0)
	if _, err := k.GetCertificate(nil); err == nil {
		t.Error("something is served before there is anything")
	}
	for range 2 {
		made := f.issue("A", born, options().dnsName())
		k.serve(made)
		k.serve(nil)
		if served, err := k.GetCertificate(nil); err != nil || !served.Leaf.Equal(made.Leaf) {
			t.Errorf("something else is served: %v", err)
		}
	}
}

func TestExpiryMetric(t *testing.T) {
	f := newFixtures(t)
	registry := prometheus.NewRegistry()
	made := f.issue("A", born, options().dnsName())
	newKeeper(t, registry, 0)
	newKeeper(t, registry, 0).serve(made) // a second one in the same process
	families, err := registry.Gather()
	kit.Must(t, err)
	got := map[string]time.Duration{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			at := time.Unix(int64(metric.GetGauge().GetValue()), 0)
			got[family.GetName()+" "+metric.GetLabel()[0].GetName()+"="+metric.GetLabel()[0].GetValue()] = at.Sub(born)
		}
	}
	want := map[string]time.Duration{
		"krake_webhook_certificate_expiry_timestamp_seconds certificate=server": 90 * day,
		"krake_webhook_certificate_expiry_timestamp_seconds certificate=ca":     5 * year,
	}
	check.Equal(t, "metrics", want, got)
}

// An upgrade keeps the certificates of former versions, which have RSA keys in PKCS #1. Their CA signs the next
// serving certificate.
func TestAnUpgradeKeepsTheCertificates(t *testing.T) {
	issue := func(template, parent *x509.Certificate, by *rsa.PrivateKey) (certificate, key []byte, made *rsa.PrivateKey) {
		made, err := rsa.GenerateKey(rand.Reader, 2048)
		kit.Must(t, err)
		template.NotBefore, template.BasicConstraintsValid = born.Add(-time.Hour), true
		template.KeyUsage |= x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment
		der, err := x509.CreateCertificate(rand.Reader, template, parent, made.Public(), cmp.Or(by, made))
		kit.Must(t, err)
		key = pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(made)})
		return Encode(&x509.Certificate{Raw: der}), key, made
	}
	const dnsName, ca = "krake-webhook.krake-system.svc", "krake-webhook-ca"
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(0), Subject: pkix.Name{CommonName: ca, Organization: []string{manifest.Domain}},
		DNSNames: []string{ca}, NotAfter: born.Add(5 * year), KeyUsage: x509.KeyUsageCertSign, IsCA: true,
	}
	data := map[string][]byte{}
	var signer *rsa.PrivateKey
	data["ca.crt"], data["ca.key"], signer = issue(authority, authority, nil)
	data["tls.crt"], data["tls.key"], _ = issue(&x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: dnsName}, DNSNames: []string{dnsName},
		NotAfter: born.Add(90 * day), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, authority, signer)
	for _, c := range []struct {
		at   time.Duration
		want []step
	}{{day, nil}, {60 * day, []step{signed}}} {
		published := trust{}.observe(configured(parseBundle(data["ca.crt"])), born)
		renewed, steps, err := options().renew(readSecret(data, published, options(), born.Add(c.at)), published, born.Add(c.at))
		kit.Must(t, err)
		check.Equal(t, "steps", c.want, steps)
		written := renewed.write(data)
		check.Equal(t, "the data stay", c.want == nil, maps.EqualFunc(data, written, bytes.Equal))
		check.Equal(t, "CA", string(data["ca.crt"])+string(data["ca.key"]), string(written["ca.crt"])+string(written["ca.key"]))
	}
}
