package certificates

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// trust has the CAs of the configuration, which the API servers trust, and since when
// this process has seen each without interruption. It is immutable.
type trust struct {
	// any are the CAs that at least one webhook has, seen those that all have.
	any  []*x509.Certificate
	seen map[string]time.Time
}

// observe returns the trust of the configuration, nil if there is none. A CA counts when
// every webhook has it.
func (t trust) observe(configuration *configuration, now time.Time) trust {
	observed := trust{seen: map[string]time.Time{}}
	if configuration == nil {
		return observed
	}
	count := map[string]int{}
	for _, webhook := range configuration.webhooks {
		ofOne := map[string]bool{}
		for _, ca := range certificatesOf(webhook.bundle) {
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
		if webhooks < len(configuration.webhooks) {
			continue
		}
		observed.seen[raw] = now
		// A clock that was put back must not prolong the wait.
		if since, ok := t.seen[raw]; ok && since.Before(now) {
			observed.seen[raw] = since
		}
	}
	return observed
}

// since returns the time since which the CA has been trusted, if it is.
func (t trust) since(ca *x509.Certificate) (time.Time, bool) {
	since, ok := t.seen[string(ca.Raw)]
	return since, ok
}

// publication returns the patch that makes the configuration trust the CAs; nil if it
// does already. The patch names all webhooks in their order, because a strategic merge
// may move those that it does not name. A JSON Patch for a webhook that is gone would be
// an invalid request, and not a conflict.
func publication(configuration *configuration, authorities []*x509.Certificate) ([]byte, error) {
	bundle := encode(authorities)
	lacks := func(webhook webhook) bool {
		return !bytes.Equal(webhook.bundle, bundle)
	}
	if len(bundle) == 0 || !slices.ContainsFunc(configuration.webhooks, lacks) {
		return nil, nil
	}
	type object map[string]any
	var webhooks []object
	for _, webhook := range configuration.webhooks {
		webhooks = append(webhooks, object{"name": webhook.name, "clientConfig": object{"caBundle": bundle}})
	}
	// The version makes the API server refuse the patch if the configuration has changed.
	return json.Marshal(object{"metadata": object{"resourceVersion": configuration.version}, "webhooks": webhooks})
}
