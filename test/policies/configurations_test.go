package policies

import (
	"context"
	"testing"

	"github.com/krake-observer/krake-observer/test/kit"
)

const onlyTheCAs = "webhook and agents change only the CAs of their own webhook configuration"

// withoutRequests makes a configuration of the webhook that no request matches: no webhook runs here.
func withoutRequests(t *testing.T) {
	t.Helper()
	kit.Must(t, apply(t.Context(), `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: krake-webhook}
webhooks:
- name: application.krake.dev
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  clientConfig: {service: {namespace: krake-system, name: krake-webhook}}
  namespaceSelector: {matchLabels: {test: none}}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]
`))
	t.Cleanup(func() { kit.Must(t, deleteConfiguration(context.Background())) })
}

// The webhook and agents change nothing in their configurations but the CAs, by whatever right they have.
func TestOnlyTheCAsOfAConfigurationChange(t *testing.T) {
	withoutRequests(t)
	webhook := identity{namespace: "krake-system", name: "krake-webhook"}
	const ca = `[{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": "eA=="}]`
	for what, c := range map[string]struct {
		who   identity
		patch string
		want  string
	}{
		"the CA":                          {webhook, ca, allowed},
		"the CA, by an agent":             {namesake, ca, onlyTheCAs},
		"the CA, by the agents' group":    {identity{name: "ivan", groups: []string{"system:serviceaccounts:krake-agents", "system:masters"}}, ca, onlyTheCAs},
		"everything, by an administrator": {administrator, `[{"op": "replace", "path": "/webhooks/0/timeoutSeconds", "value": 7}]`, allowed},
		"the namespaces":                  {webhook, `[{"op": "remove", "path": "/webhooks/0/namespaceSelector"}]`, onlyTheCAs},
		"the failure policy":              {webhook, `[{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Fail"}]`, onlyTheCAs},
		"how often it is asked":           {webhook, `[{"op": "replace", "path": "/webhooks/0/reinvocationPolicy", "value": "IfNeeded"}]`, onlyTheCAs},
		"a condition more":                {webhook, `[{"op": "add", "path": "/webhooks/0/matchConditions", "value": [{"name": "x", "expression": "false"}]}]`, onlyTheCAs},
		"a webhook less":                  {webhook, `[{"op": "remove", "path": "/webhooks/0"}]`, onlyTheCAs},
		"the path":                        {webhook, `[{"op": "add", "path": "/webhooks/0/clientConfig/service/path", "value": "/x"}]`, onlyTheCAs},
		"the owner":                       {webhook, `[{"op": "add", "path": "/metadata/ownerReferences", "value": [{"apiVersion": "v1", "kind": "Namespace", "name": "x", "uid": "0"}]}]`, onlyTheCAs},
		"a finalizer":                     {webhook, `[{"op": "add", "path": "/metadata/finalizers", "value": ["example.org/x"]}]`, onlyTheCAs},
	} {
		t.Run(what, func(t *testing.T) {
			const path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/krake-webhook"
			expect(t, c.want, kit.Send(t, c.who.mustClient(t), "PATCH "+path, c.patch)())
		})
	}
}
