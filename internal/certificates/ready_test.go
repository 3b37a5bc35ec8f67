package certificates

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// newKeeper returns a Keeper without a cluster, whose clock stands at a time after born.
func newKeeper(t *testing.T, registry prometheus.Registerer, at time.Duration) *Keeper {
	t.Helper()
	gauge, err := expiryGauge(registry)
	kit.Must(t, err)
	k := &Keeper{signer: newSigner(options()), now: func() time.Time { return born.Add(at) }, logger: logr.Discard(), expiry: gauge}
	k.published.Store(&trust{})
	return k
}

// A replica knows whether API servers accept its pair, and reports it.
func TestReady(t *testing.T) {
	f := newFixtures(t)
	made, err := f.signer.sign(f.named["A"], born)
	kit.Must(t, err)
	cases := []struct {
		name    string
		serves  *pair
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
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			k := newKeeper(t, prometheus.NewRegistry(), c.at)
			published := trust{}.observe(configured(certificatesOf(f.named[c.trusted].CertPEM)), born)
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
		made, err := f.signer.sign(f.named["A"], born)
		kit.Must(t, err)
		k.serve(made)
		k.serve(nil)
		if served, err := k.GetCertificate(nil); err != nil || !served.Leaf.Equal(made.serving.Leaf) {
			t.Errorf("something else is served: %v", err)
		}
	}
}

func TestExpiryMetric(t *testing.T) {
	f := newFixtures(t)
	registry := prometheus.NewRegistry()
	made, err := f.signer.sign(f.named["A"], born)
	kit.Must(t, err)
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
