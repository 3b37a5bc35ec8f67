package certificates

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// configured returns a configuration with a webhook for each bundle.
func configured(bundles ...[]*x509.Certificate) *admissionv1.MutatingWebhookConfiguration {
	configuration := &admissionv1.MutatingWebhookConfiguration{}
	configuration.Name, configuration.ResourceVersion = "krake-webhook", "7"
	for i, bundle := range bundles {
		path := "/mutate"
		configuration.Webhooks = append(configuration.Webhooks, admissionv1.MutatingWebhook{
			// The last name comes first: the position of a webhook has a meaning.
			Name: fmt.Sprintf("webhook-%d.krake.dev", 9-i),
			ClientConfig: admissionv1.WebhookClientConfig{
				Service:  &admissionv1.ServiceReference{Namespace: "krake-system", Name: "krake-webhook", Path: &path},
				CABundle: encode(bundle),
			},
		})
	}
	return configuration
}

func TestObserve(t *testing.T) {
	f := newFixtures(t)
	a, b := f.named["A"].Cert, f.named["B"].Cert
	both := []*x509.Certificate{a, b}
	rubbish := configured(both)
	rubbish.Webhooks[0].ClientConfig.CABundle = append([]byte("rubbish\n"), rubbish.Webhooks[0].ClientConfig.CABundle...)
	cases := []struct {
		name          string
		configuration *admissionv1.MutatingWebhookConfiguration
		after         time.Duration // since A was first seen
		want          map[string]time.Duration
		any           []*x509.Certificate
	}{
		{"a CA that stays has been there since it was seen first", configured([]*x509.Certificate{a}), 7, map[string]time.Duration{"A": 0}, both[:1]},
		{"one that is added since now", configured(both), 7, map[string]time.Duration{"A": 0, "B": 7}, both},
		{"one that only one of two webhooks has is not trusted", configured(both, []*x509.Certificate{a}), 7, map[string]time.Duration{"A": 0}, both},
		{"one that one webhook has twice, and the other not, neither", configured([]*x509.Certificate{a, b, b}, []*x509.Certificate{a}), 7, map[string]time.Duration{"A": 0}, both},
		{"one that is gone", configured([]*x509.Certificate{b}), 7, map[string]time.Duration{"B": 7}, both[1:]},
		{"what else is in the bundle is passed over", rubbish, 7, map[string]time.Duration{"A": 0, "B": 7}, both},
		{"a clock that was put back begins anew", configured([]*x509.Certificate{a}), -7, map[string]time.Duration{"A": -7}, both[:1]},
		{"a configuration without webhooks", configured(), 7, map[string]time.Duration{}, nil},
		{"no configuration", nil, 7, map[string]time.Duration{}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			before := trust{}.observe(configured([]*x509.Certificate{a}), born)
			after := before.observe(c.configuration, born.Add(c.after))
			got := map[string]time.Duration{}
			for _, ca := range both {
				if since, ok := after.since(ca); ok {
					got[f.name(ca)] = since.Sub(born)
				}
			}
			check.Equal(t, "trusted since", c.want, got)
			if !slices.EqualFunc(c.any, after.any, (*x509.Certificate).Equal) {
				t.Errorf("%d CAs that any webhook has, want %d", len(after.any), len(c.any))
			}
			if since, ok := before.since(a); !ok || !since.Equal(born) {
				t.Error("what was observed before has changed")
			}
		})
	}
}

func TestPublication(t *testing.T) {
	f := newFixtures(t)
	a, b := []*x509.Certificate{f.named["A"].Cert}, []*x509.Certificate{f.named["B"].Cert}
	cases := []struct {
		name          string
		configuration *admissionv1.MutatingWebhookConfiguration
		authorities   []*x509.Certificate
		changes       bool
	}{
		{"a configuration as it is shipped", configured(nil), a, true},
		{"a CA is added", configured(a), append(b, a...), true},
		{"some webhooks lack it", configured(a, b, nil), a, true},
		{"it is there", configured(a, a), a, false},
		{"nothing to trust: what is there stays", configured(a), nil, false},
		{"no webhooks", configured(), a, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			patch, err := publication(c.configuration, c.authorities)
			kit.Must(t, err)
			if (patch != nil) != c.changes {
				t.Fatalf("patch: %s", patch)
			}
			if patch == nil {
				return
			}
			if !strings.Contains(string(patch), `"resourceVersion":"7"`) {
				t.Errorf("no conflict with what others write: %s", patch)
			}
			want := c.configuration.DeepCopy()
			for i := range want.Webhooks {
				want.Webhooks[i].ClientConfig.CABundle = encode(c.authorities)
			}
			check.Equal(t, "afterwards", want, apply(t, c.configuration, patch))
		})
	}
}

// apply applies a patch as the API server does.
func apply(t *testing.T, to *admissionv1.MutatingWebhookConfiguration, patch []byte) *admissionv1.MutatingWebhookConfiguration {
	t.Helper()
	document, err := json.Marshal(to)
	kit.Must(t, err)
	var after admissionv1.MutatingWebhookConfiguration
	if document, err = strategicpatch.StrategicMergePatch(document, patch, after); err != nil {
		t.Fatal(err)
	}
	kit.Must(t, json.Unmarshal(document, &after))
	return &after
}
