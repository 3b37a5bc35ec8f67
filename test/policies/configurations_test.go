package policies

import (
	"context"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/test/kit"
)

const onlyTheCAs = "webhook and agents change only the CAs of their own webhook configuration"

// withoutRequests makes a configuration of the webhook that no request matches: no webhook runs here.
func withoutRequests(t *testing.T) {
	t.Helper()
	none, ignore := admissionregistrationv1.SideEffectClassNone, admissionregistrationv1.Ignore
	configurations := server.AdmissionregistrationV1().MutatingWebhookConfigurations()
	_, err := configurations.Create(t.Context(), &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "krake-webhook"},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name: "application.krake.dev", SideEffects: &none, FailurePolicy: &ignore, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				Service: &admissionregistrationv1.ServiceReference{Namespace: "krake-system", Name: "krake-webhook"},
			},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"test": "none"}},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}},
	}, metav1.CreateOptions{})
	kit.Must(t, err)
	t.Cleanup(func() {
		kit.Must(t, configurations.Delete(context.Background(), "krake-webhook", metav1.DeleteOptions{}))
	})
}

// configure changes the webhook's configuration with a JSON patch.
func configure(t *testing.T, who identity, patch string) error {
	t.Helper()
	return kit.ErrorOf(who.mustClient(t).AdmissionregistrationV1().MutatingWebhookConfigurations().Patch(t.Context(), "krake-webhook",
		types.JSONPatchType, []byte(patch), metav1.PatchOptions{}))
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
		t.Run(what, func(t *testing.T) { expect(t, c.want, configure(t, c.who, c.patch)) })
	}
}
