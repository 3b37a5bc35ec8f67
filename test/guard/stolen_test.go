package guard

import (
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/test/kit"
)

// A stolen token of the agent changes nothing in the guard's configuration but the CAs, and reads no Secret but the
// guard's own.
func TestStolenToken(t *testing.T) {
	config := rest.CopyConfig(hub.RESTConfig())
	config.TLSClientConfig.CertData, config.TLSClientConfig.KeyData, config.TLSClientConfig.CertFile, config.TLSClientConfig.KeyFile = nil, nil, "", ""
	config.BearerToken = hub.Token(t, "krake-agents", "local")
	thief, err := kubernetes.NewForConfig(config)
	kit.Must(t, err)
	configurations := thief.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	// With more rights by mistake, the policy still holds.
	mistaken := thief.AdmissionregistrationV1().MutatingWebhookConfigurations()
	hub.Kubectl(t, "create", "clusterrole", "mistake", "--verb=create,patch", "--resource=validatingwebhookconfigurations.admissionregistration.k8s.io,mutatingwebhookconfigurations.admissionregistration.k8s.io")
	hub.Kubectl(t, "create", "clusterrolebinding", "mistake", "--clusterrole=mistake", "--serviceaccount=krake-agents:local")
	kit.Eventually(t, func() string {
		_, err := mistaken.Patch(t.Context(), "krake-webhook", types.MergePatchType, []byte(`{"metadata": {"labels": {"a": "b"}}}`), metav1.PatchOptions{})
		return unlessRefusedByPolicy(err)
	})
	_, err = configurations.Create(t.Context(), &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "another"}}, metav1.CreateOptions{})
	if complaint := unlessRefusedByPolicy(err); complaint != "" {
		t.Error(complaint)
	}
	hub.Kubectl(t, "delete", "clusterrolebinding,clusterrole", "mistake")

	for what, patch := range map[string]string{
		"see other objects":      `[{"op": "remove", "path": "/webhooks/0/objectSelector"}]`,
		"block the cluster":      `[{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Fail"}]`,
		"be called elsewhere":    `[{"op": "replace", "path": "/webhooks/0/clientConfig/service/name", "value": "other"}]`,
		"end the guard":          `[{"op": "remove", "path": "/webhooks/1"}]`,
		"hide it from its owner": `[{"op": "add", "path": "/metadata/labels", "value": {}}]`,
		"note something":         `[{"op": "add", "path": "/metadata/annotations", "value": {"a": "b"}}]`,
		"be called outside": `[{"op": "remove", "path": "/webhooks/0/clientConfig/service"},
			{"op": "add", "path": "/webhooks/0/clientConfig/url", "value": "https://attacker.example.org"}]`,
		"have it collected": `[{"op": "add", "path": "/metadata/ownerReferences", "value": [
			{"apiVersion": "v1", "kind": "Namespace", "name": "default", "uid": "00000000-0000-0000-0000-000000000000"}]}]`,
	} {
		_, err := configurations.Patch(t.Context(), "krake-guard", types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
		if complaint := unlessRefusedByPolicy(err); complaint != "" {
			t.Errorf("%s: %s", what, complaint)
		}
	}
	_, err = configurations.Patch(t.Context(), "krake-guard", types.JSONPatchType,
		[]byte(`[{"op": "test", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]`), metav1.PatchOptions{})
	kit.Must(t, err)
	kit.Must(t, kit.ErrorOf(configurations.Patch(t.Context(), "krake-guard", types.JSONPatchType,
		[]byte(`[{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": ""}]`), metav1.PatchOptions{})))
	for what, err := range map[string]error{
		"delete the configuration": configurations.Delete(t.Context(), "krake-guard", metav1.DeleteOptions{}),
		"read it by name":          kit.ErrorOf(configurations.Get(t.Context(), "krake-guard", metav1.GetOptions{})),
		"list all configurations":  kit.ErrorOf(configurations.List(t.Context(), metav1.ListOptions{})),
		"list Secrets":             kit.ErrorOf(thief.CoreV1().Secrets("krake-agents").List(t.Context(), metav1.ListOptions{})),
		"delete the Secret":        thief.CoreV1().Secrets("krake-agents").Delete(t.Context(), "krake-guard-certificate", metav1.DeleteOptions{}),
		"change the webhook":       kit.ErrorOf(thief.AdmissionregistrationV1().MutatingWebhookConfigurations().Patch(t.Context(), "krake-webhook", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: the answer is %v", what, err)
		}
	}
	namespace := newWeb(t) // the agents have restored the CAs
	settle(t, namespace)
}

// unlessRefusedByPolicy returns a complaint unless the policy has refused a request.
func unlessRefusedByPolicy(err error) string {
	if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "change only the CAs") {
		return ""
	}
	return fmt.Sprintf("the answer is %v", err)
}
