package certificates

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"maps"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// trust is what the configuration makes the API servers trust, and since when
// it has been seen to do so without interruption. It is not changed once made.
type trust struct {
	// any are the CAs that at least one webhook has, seen those that all have.
	any  []*x509.Certificate
	seen map[string]time.Time
}

// observe takes in the configuration, nil if there is none. A CA counts when
// every webhook has it.
func (t trust) observe(configuration *admissionv1.MutatingWebhookConfiguration, now time.Time) trust {
	observed := trust{seen: map[string]time.Time{}}
	if configuration == nil {
		return observed
	}
	count := map[string]int{}
	for _, webhook := range configuration.Webhooks {
		ofOne := map[string]bool{}
		for _, ca := range certificatesOf(webhook.ClientConfig.CABundle) {
			ofOne[string(ca.Raw)] = true
			if !slices.ContainsFunc(observed.any, ca.Equal) {
				observed.any = append(observed.any, ca)
			}
		}
		for raw := range maps.Keys(ofOne) {
			count[raw]++
		}
	}
	for raw, webhooks := range count {
		if webhooks < len(configuration.Webhooks) {
			continue
		}
		observed.seen[raw] = now
		// A clock that was put back must not make the wait longer than a wait.
		if since, ok := t.seen[raw]; ok && since.Before(now) {
			observed.seen[raw] = since
		}
	}
	return observed
}

// since tells since when the CA has been trusted, if it is.
func (t trust) since(ca *x509.Certificate) (time.Time, bool) {
	since, ok := t.seen[string(ca.Raw)]
	return since, ok
}

// stillUsed are the CAs to keep while the Secret has none: those that it had
// before, and, if somebody has emptied it, those that are published. Replicas
// still serve what they signed.
func (t trust) stillUsed(h held, now time.Time) []*x509.Certificate {
	kept := slices.Clone(h.previous)
	for _, ca := range validOf(slices.Clone(t.any), now) {
		isNext := h.next != nil && h.next.Cert.Equal(ca)
		if !isNext && !slices.ContainsFunc(kept, ca.Equal) {
			kept = append(kept, ca)
		}
	}
	return kept
}

// publication is the patch that makes the configuration trust the CAs; nil if
// it does. It names the webhooks, all of them and in their order, because a
// strategic merge may move those that it does not name; a JSON Patch that misses
// a webhook by now would not be a conflict, but an invalid request.
func publication(configuration *admissionv1.MutatingWebhookConfiguration, authorities []*x509.Certificate) ([]byte, error) {
	bundle := encode(authorities)
	lacks := func(webhook admissionv1.MutatingWebhook) bool {
		return !bytes.Equal(webhook.ClientConfig.CABundle, bundle)
	}
	if len(bundle) == 0 || !slices.ContainsFunc(configuration.Webhooks, lacks) {
		return nil, nil
	}
	type object map[string]any
	var webhooks []object
	for _, webhook := range configuration.Webhooks {
		webhooks = append(webhooks, object{"name": webhook.Name, "clientConfig": object{"caBundle": bundle}})
	}
	// With its version the patch is refused if this is not the configuration any more.
	return json.Marshal(object{"metadata": object{"resourceVersion": configuration.ResourceVersion}, "webhooks": webhooks})
}
