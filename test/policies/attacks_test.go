package policies

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/test/kit"
)

// Attacks with the token of agent local, line by line as docs/attacks.md has them.
func TestAttacksOfAnAgent(t *testing.T) {
	namespace := newNamespace(t)
	admitted.in(t, namespace)
	t.Cleanup(func() { letGo(t, namespace) })
	t.Cleanup(func() {
		kit.Must(t, server.CoordinationV1().Leases("krake-agents").Delete(context.Background(), "krake-agent-local", metav1.DeleteOptions{}))
	})
	client := agent("local").mustClient(t)
	send := func(request, body string) func() error { return kit.Send(t, client, request, body) }
	const marks = `"labels": {"krake.dev/owned-by": "x"}, "annotations": {"krake.dev/owner": "demo/a x"}`
	const ofKubernetes = "make no ConfigMap of Kubernetes"
	in := "/api/v1/namespaces/" + namespace
	app := "PATCH " + in + "/configmaps/app"
	kit.Attacks(t, "agent", []kit.Attempt{
		{What: "asks what any user may do", Can: true, Try: send("POST /apis/authorization.k8s.io/v1/subjectaccessreviews",
			`{"spec": {"user": "anna", "resourceAttributes": {"verb": "get", "resource": "secrets"}}}`)},
		{What: "takes its own agent's Lease", Can: true, Try: send("POST /apis/coordination.k8s.io/v1/namespaces/krake-agents/leases",
			`{"metadata": {"name": "krake-agent-local"}, "spec": {"holderIdentity": "thief"}}`)},
		{What: "creates an Event about a node", Can: true, Try: send("POST /apis/events.k8s.io/v1/namespaces/kube-system/events",
			`{"metadata": {"name": "forged"}, "eventTime": "2026-01-02T15:04:05.000000Z", "type": "Warning", "reason": "Forged", "action": "Forge", "note": "x",
			"reportingController": "kubelet", "reportingInstance": "x", "regarding": {"kind": "Node", "name": "x", "namespace": "kube-system"}}`)},
		{What: "creates a Service with another host's IP", Can: true, Try: send("POST "+in+"/services",
			`{"metadata": {"name": "taker", `+marks+`}, "spec": {"ports": [{"port": 443}], "externalIPs": ["192.0.2.1"]}}`)},
		{What: "removes who wrote which field", Can: true, Try: send(app, `{"metadata": {"managedFields": [{}]}}`)},
		{What: "forges its inventory", Can: true, Try: send(app,
			`{"data": {"inventory.local": "[{\"apiVersion\": \"v1\", \"kind\": \"Service\", \"namespace\": \"kube-system\", \"name\": \"kube-dns\"}]"}}`)},
		{What: "adds its finalizer to keep an Application", Can: true, Try: send(app, `{"metadata": {"finalizers": ["local.krake.dev/resources"]}}`)},
		{What: "applies a spec under the name of kubectl", By: "and no other key", Try: send(app+"?fieldManager=kubectl&force=true",
			`{"apiVersion": "v1", "kind": "ConfigMap", "data": {"spec.manifest": "[1]"}}`)},
		{What: "adds our marks to an Application", By: "leaves annotations", Try: send(app, `{"metadata": {`+marks+`}}`)},
		{What: "creates kube-root-ca.crt before Kubernetes does", By: ofKubernetes, Try: send("POST "+in+"/configmaps",
			`{"metadata": {"name": "kube-root-ca.crt", `+marks+`}, "data": {"ca.crt": "x"}}`)},
		{What: "creates cluster-info in kube-public", By: ofKubernetes, Try: send("POST /api/v1/namespaces/kube-public/configmaps?dryRun=All",
			`{"metadata": {"name": "cluster-info", `+marks+`}}`)},
		{What: "adds a container to a running Pod", By: `"pods/ephemeralcontainers"`, Try: send("PATCH "+in+"/pods/x/ephemeralcontainers", `{}`)},
		{What: "writes the address of a Pod", By: `"pods/status"`, Try: send("PATCH "+in+"/pods/x/status", `{}`)},
		{What: "reaches a Service through the API server", By: `"services/proxy"`, Try: send("GET "+in+"/services/x/proxy/", "")},
		{What: "asks for a client certificate", By: "certificatesigningrequests", Try: send("POST /apis/certificates.k8s.io/v1/certificatesigningrequests",
			`{"metadata": {"name": "x"}, "spec": {"signerName": "kubernetes.io/kube-apiserver-client", "request": "eA==", "usages": ["client auth"]}}`)},
	})
}

// Attacks with the token of the webhook, line by line as docs/attacks.md has them.
func TestAttacksOfTheWebhook(t *testing.T) {
	namespace := newNamespace(t)
	create(t, administrator, plain(namespace, "theirs"))
	withoutRequests(t)
	client := identity{namespace: "krake-system", name: "krake-webhook"}.mustClient(t)
	send := func(request, body string) func() error { return kit.Send(t, client, request, body) }
	in := "/api/v1/namespaces/" + namespace
	const another = `[{"op": "copy", "from": "/webhooks/0", "path": "/webhooks/-"}, {"op": "replace", "path": "/webhooks/1/name", "value": "another.krake.dev"}]`
	kit.Attacks(t, "webhook", []kit.Attempt{
		{What: "learns by a dry run that a ConfigMap exists", Can: true, Try: func() error {
			err := kit.ErrorOf(client.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}}, metav1.CreateOptions{DryRun: dry}))
			if apierrors.IsAlreadyExists(err) {
				return nil
			}
			return err
		}},
		{What: "adds a second webhook to its configuration", By: "change only the CAs", Try: send("PATCH /apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/krake-webhook", another)},
		{What: "creates a ConfigMap with generateName", By: "it tries with dry runs", Try: send("POST "+in+"/configmaps", `{"metadata": {"generateName": "x"}}`)},
		{What: "learns by a dry run that a Secret exists", By: `"secrets"`, Try: send("POST "+in+"/secrets?dryRun=All", `{"metadata": {"name": "x"}}`)},
	})
}
