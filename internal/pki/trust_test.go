package pki

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// shipped returns a configuration of the kind with a webhook for each bundle.
func shipped(isValidating bool, bundles ...[]*x509.Certificate) client.Object {
	object := Options{Configuration: "krake-webhook", IsValidating: isValidating}.newConfiguration()
	object.SetResourceVersion("7")
	for i, bundle := range bundles {
		// The last name comes first: the position of a webhook has a meaning.
		name, path := fmt.Sprintf("webhook-%d.krake.dev", 9-i), "/mutate"
		config := admissionv1.WebhookClientConfig{
			Service:  &admissionv1.ServiceReference{Namespace: "krake-system", Name: "krake-webhook", Path: &path},
			CABundle: Encode(bundle...),
		}
		switch object := object.(type) {
		case *admissionv1.MutatingWebhookConfiguration:
			object.Webhooks = append(object.Webhooks, admissionv1.MutatingWebhook{Name: name, ClientConfig: config})
		case *admissionv1.ValidatingWebhookConfiguration:
			object.Webhooks = append(object.Webhooks, admissionv1.ValidatingWebhook{Name: name, ClientConfig: config})
		}
	}
	return object
}

// configured returns a configuration with a webhook for each bundle.
func configured(bundles ...[]*x509.Certificate) client.Object { return shipped(false, bundles...) }

func TestObserve(t *testing.T) {
	f := newFixtures(t)
	a, b := f.named["A"].Leaf, f.named["B"].Leaf
	both := []*x509.Certificate{a, b}
	rubbish := configured(both)
	first := bundles(rubbish)[0]
	*first = append([]byte("rubbish\n"), *first...)
	for _, c := range []struct {
		name          string
		configuration client.Object
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
	} {
		t.Run(c.name, func(t *testing.T) {
			before := trust{}.observe(configured([]*x509.Certificate{a}), born)
			after := before.observe(c.configuration, born.Add(c.after))
			got := map[string]time.Duration{}
			for _, ca := range both {
				if since, ok := after.seen[string(ca.Raw)]; ok {
					got[f.name(ca)] = since.Sub(born)
				}
			}
			check.Equal(t, "trusted since", c.want, got)
			if !slices.EqualFunc(c.any, after.any, (*x509.Certificate).Equal) {
				t.Errorf("%d CAs that any webhook has, want %d", len(after.any), len(c.any))
			}
			if since, ok := before.seen[string(a.Raw)]; !ok || !since.Equal(born) {
				t.Error("what was observed before has changed")
			}
		})
	}
}

func TestPublication(t *testing.T) {
	f := newFixtures(t)
	a, b := []*x509.Certificate{f.named["A"].Leaf}, []*x509.Certificate{f.named["B"].Leaf}
	type all [][]*x509.Certificate
	for _, c := range []struct {
		name        string
		bundles     all
		authorities []*x509.Certificate
		changes     bool
	}{
		{"a configuration as it is shipped", all{nil}, a, true},
		{"a CA is added", all{a}, append(b, a...), true},
		{"some webhooks lack it", all{a, b, nil}, a, true},
		{"it is there", all{a, a}, a, false},
		{"nothing to trust: what is there stays", all{a}, nil, false},
		{"no webhooks", nil, a, false},
	} {
		for _, isValidating := range []bool{false, true} {
			before := shipped(isValidating, c.bundles...)
			t.Run(fmt.Sprintf("%T: %s", before, c.name), func(t *testing.T) {
				changed, made := publication(before, c.authorities)
				if (made != nil) != c.changes {
					t.Fatalf("patch: %v", made)
				}
				check.Equal(t, "the argument", shipped(isValidating, c.bundles...), before)
				if made == nil {
					return
				}
				check.Equal(t, "type of the patch", types.StrategicMergePatchType, made.Type())
				patch, err := made.Data(changed)
				kit.Must(t, err)
				if !strings.Contains(string(patch), `"resourceVersion":"7"`) {
					t.Errorf("no conflict with what others write: %s", patch)
				}
				want := shipped(isValidating, slices.Repeat(all{c.authorities}, len(c.bundles))...)
				check.Equal(t, "afterwards", want, apply(t, before, patch, Options{IsValidating: isValidating}.newConfiguration()))
			})
		}
	}
}

// apply applies a patch as the API server does, and returns the result in after.
func apply(t *testing.T, before client.Object, patch []byte, after client.Object) client.Object {
	t.Helper()
	document, err := json.Marshal(before)
	kit.Must(t, err)
	document, err = strategicpatch.StrategicMergePatch(document, patch, after)
	kit.Must(t, err)
	kit.Must(t, json.Unmarshal(document, after))
	return after
}
