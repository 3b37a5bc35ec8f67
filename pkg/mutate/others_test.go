package mutate_test

import (
	"encoding/base64"
	"maps"
	"testing"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/test/check"
)

// A default schema does not observe what other controllers are meant to write. A user's schema does.
func TestWhatOthersWriteIsNotObserved(t *testing.T) {
	certificate := base64.StdEncoding.EncodeToString([]byte("-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"))
	webhooks := func(annotations, bundle string) string {
		return "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a" + annotations +
			"}, webhooks: [{name: a.example.com}, {name: b.example.com, clientConfig: {caBundle: " + bundle + ", service: {name: b}}}]}\n"
	}
	observed := "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a}, webhooks: [{name: null}, " +
		"{name: null, clientConfig: {caBundle: null}}, {observer_schema_list_min_length: 2, observer_schema_list_max_length: 0}]}\n"
	definition := "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a}, spec: {conversion: {webhook: {clientConfig: {caBundle: Cg==}}}}}\n"
	served := "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: a}, spec: {group: a, caBundle: Cg==}}\n"
	account := "{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}, secrets: [{name: a}]}\n"
	deployment := "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, annotations: {deployment.kubernetes.io/revision: '1', team: b}}}\n"
	second := func(resource object) object { return resource["webhooks"].([]any)[1].(object)["clientConfig"].(object) }
	for name, c := range map[string]struct {
		manifest, schema string
		of               func(resource object) object
		change           object
		isDrift          bool
	}{
		"a placeholder": {webhooks("", "Cg=="), "", second, object{"caBundle": certificate}, false},
		"no base64":     {webhooks("", "no"), "", second, object{"caBundle": certificate}, false},
		"a certificate": {webhooks("", certificate), "", second, object{"caBundle": "Cg=="}, true},
		"a certificate of cert-manager": {
			webhooks(", annotations: {cert-manager.io/inject-ca-from: a/b}", certificate), "", second, object{"caBundle": "Cg=="}, false,
		},
		"a user's schema":    {webhooks("", "Cg=="), observed, second, object{"caBundle": certificate}, true},
		"another field":      {webhooks("", "Cg=="), "", second, object{"service": object{"name": "c"}}, true},
		"of a conversion":    {definition, "", func(r object) object { return dig(r, "spec", "conversion", "webhook", "clientConfig") }, object{"caBundle": certificate}, false},
		"of an APIService":   {served, "", func(r object) object { return dig(r, "spec") }, object{"caBundle": certificate}, false},
		"a group":            {served, "", func(r object) object { return dig(r, "spec") }, object{"group": "b"}, true},
		"a Secret":           {account, "", func(r object) object { return r }, object{"secrets": []any{object{"name": "a"}, object{"name": "b"}}}, false},
		"another Secret":     {account, "", func(r object) object { return r }, object{"secrets": []any{object{"name": "b"}}}, true},
		"a revision":         {deployment, "", func(r object) object { return dig(r, "metadata", "annotations") }, object{"deployment.kubernetes.io/revision": "2"}, false},
		"another annotation": {deployment, "", func(r object) object { return dig(r, "metadata", "annotations") }, object{"team": "c"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			desired, refusals := mutate.Desire(application.Spec{Manifest: c.manifest, ObserverSchema: c.schema}, nil)
			check.Must(t, refusals.ToAggregate())
			again, _ := mutate.Desire(application.Spec{Manifest: c.manifest, ObserverSchema: c.schema}, nil)
			live := again.Resources[0]
			at := c.of(live)
			maps.Copy(at, c.change)
			differences := desired.Schemas[0].Compare(desired.Resources[0], live)
			check.Equal(t, "drift", c.isDrift, len(differences) > 0)
		})
	}
}

func dig(fields object, path ...string) object {
	for _, name := range path {
		fields = fields[name].(object)
	}
	return fields
}
