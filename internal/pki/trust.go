package pki

import (
	"bytes"
	"crypto/x509"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// bundles returns the fields of a configuration of either kind by which the API servers
// verify the server, one for each webhook.
func bundles(configuration client.Object) (all []*[]byte) {
	switch configuration := configuration.(type) {
	case *admissionv1.MutatingWebhookConfiguration:
		for i := range configuration.Webhooks {
			all = append(all, &configuration.Webhooks[i].ClientConfig.CABundle)
		}
	case *admissionv1.ValidatingWebhookConfiguration:
		for i := range configuration.Webhooks {
			all = append(all, &configuration.Webhooks[i].ClientConfig.CABundle)
		}
	}
	return all
}

// trust has the CAs of the configuration, which the API servers trust, and since when
// this process has seen each without interruption. It is immutable.
type trust struct {
	// any are the CAs that at least one webhook has. seen are those that all have, by their
	// bytes.
	any  []*x509.Certificate
	seen map[string]time.Time
}

// observe returns the trust of the configuration, nil if there is none.
func (t trust) observe(configuration client.Object, now time.Time) trust {
	observed := trust{seen: map[string]time.Time{}}
	var each [][]*x509.Certificate
	for _, bundle := range bundles(configuration) {
		each = append(each, parseBundle(*bundle))
	}
	observed.any = unique(slices.Concat(each...))
	for _, ca := range observed.any {
		if slices.ContainsFunc(each, func(one []*x509.Certificate) bool { return !slices.ContainsFunc(one, ca.Equal) }) {
			continue
		}
		observed.seen[string(ca.Raw)] = now
		// A clock that was put back must not prolong the wait.
		if since, ok := t.seen[string(ca.Raw)]; ok && since.Before(now) {
			observed.seen[string(ca.Raw)] = since
		}
	}
	return observed
}

// publication returns the configuration that trusts the CAs, and the patch to it; nil if the
// API server has it already. The API server refuses the patch if the configuration has changed.
func publication(configuration client.Object, authorities []*x509.Certificate) (client.Object, client.Patch) {
	bundle := Encode(authorities...)
	lacks := func(of *[]byte) bool { return !bytes.Equal(*of, bundle) }
	if len(bundle) == 0 || !slices.ContainsFunc(bundles(configuration), lacks) {
		return nil, nil
	}
	changed := configuration.DeepCopyObject().(client.Object)
	for _, of := range bundles(changed) {
		*of = bundle
	}
	return changed, client.StrategicMergeFrom(configuration, client.MergeFromWithOptimisticLock{})
}
