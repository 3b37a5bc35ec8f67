package e2e

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/krake-observer/krake-observer/test/kit"
)

// A webhook on the target rewrites an observed field at every write, each time to
// another value. The agent accepts the webhook's value: it writes once to repair or
// create an object, and then no more.
func TestAWebhookThatAlwaysRewrites(t *testing.T) {
	kit.Long(t, "each drift costs a settling time")
	if server, err := url.Parse(hub.URL()); err != nil || !isLoopback(server.Hostname()) {
		cannotRun(t, "its webhook is a process of this machine, which this API server does not reach")
	}
	namespace := newNginx(t)
	settle(t, namespace)
	rewritePorts(t, namespace)
	before := auditMark(t)
	hub.Change(t, kit.Services, namespace, "nginx", `{"spec": {"selector": {"app": "other"}}}`)
	hub.EventuallyField(t, "nginx", kit.Services, namespace, "nginx", "spec", "selector", "app")
	checkNames(t, eventuallyCondition(t, namespace, "nginx", "Reconciled", "True", "NormalizedByServer"),
		"Service "+namespace+"/nginx", "spec.ports[0].targetPort")
	awaitCalm(t, namespace)
	eventuallyRepairs(t, before, 1, namespace)

	createApplication(t, namespace, "born", "{apiVersion: v1, kind: Service, metadata: {name: born}, spec: {ports: [{port: 80, targetPort: 80}]}}", "")
	eventuallyCondition(t, namespace, "born", "Reconciled", "True", "NormalizedByServer")
	awaitCalm(t, namespace)
	eventuallyRepairs(t, before, 1, namespace)
	before = auditMark(t)
	withoutAgent(t, func() {})
	checkCalm(t, before, namespace, "after a restart")
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// rewritePorts registers a webhook for every Service of a namespace, and waits until
// the API server calls it.
func rewritePorts(t *testing.T, namespace string) {
	t.Helper()
	var calls atomic.Int64
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Response = rewritten(review.Request, calls.Add(1))
		if err := json.NewEncoder(w).Encode(review); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	configuration := fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: rewriter-%[1]s}
webhooks:
- name: rewriter.example.org
  clientConfig: {url: %[2]q, caBundle: %[3]s}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [services]}]
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
  admissionReviewVersions: [v1]
  sideEffects: None
`, namespace, server.URL, base64.StdEncoding.EncodeToString(certificate))
	hub.KubectlWith(t, configuration, "create", "-f", "-")
	t.Cleanup(func() { hub.Kubectl(t, "delete", "mutatingwebhookconfiguration", "rewriter-"+namespace) })
	kit.Eventually(t, func() string {
		if _, err := tryKubectl(t, "", "--namespace", namespace, "create", "service", "clusterip", "probe", "--tcp=80", "--dry-run=server"); err != nil {
			return err.Error()
		}
		if calls.Load() == 0 {
			return "the API server does not call the webhook"
		}
		return ""
	})
}

// rewritten returns the webhook's nth answer: the port is another each time.
func rewritten(request *admissionv1.AdmissionRequest, number int64) *admissionv1.AdmissionResponse {
	patch := fmt.Sprintf(`[{"op": "replace", "path": "/spec/ports/0/targetPort", "value": %d}]`, 7000+number)
	kind := admissionv1.PatchTypeJSONPatch
	return &admissionv1.AdmissionResponse{UID: request.UID, Allowed: true, Patch: []byte(patch), PatchType: &kind}
}
