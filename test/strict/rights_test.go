package strict

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/kit"
)

// testClient is the user agent of the tests, which distinguishes them in the audit log
// from the agent, whose token they use.
const testClient = "strict-test"

// The account writes a role, so that the API server compares it with the account's own
// rights. A role within them is created; for another one, the Application reports the
// refusal.
func TestRoles(t *testing.T) {
	w := narrow
	namespace := w.namespace(t)
	w.account(t, namespace, "krake-deployer", "admin")
	w.apply(t, namespace, "app", fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: default, namespace: %s}]
`, namespace))
	w.reconciled(t, namespace, "app")
	w.Change(t, kit.Roles, namespace, "reader", `{"rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]}`)
	kit.EventuallyTrue(t, "the rules are not reverted", func() bool {
		return strings.Contains(fmt.Sprint(w.Get(t, kit.Roles, namespace, "reader").Object["rules"]), "configmaps")
	})

	begin := w.Mark(t)
	w.apply(t, namespace, "app-greedy", `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: greedy}
rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: greedy}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: default}]
`)
	w.says(t, namespace, "app-greedy", "Forbidden", "greedy")
	if w.Get(t, kit.Roles, namespace, "greedy") != nil || w.Get(t, kit.RoleBindings, namespace, "greedy") != nil {
		t.Error("it hands out more than it has")
	}
	checkNoneAccepted(t, begin, namespace)
	w.Kubectl(t, "--namespace", namespace, "delete", "configmap", "app", "app-greedy", "--timeout", kit.Timeout.String())
	w.EventuallyGone(t, kit.Roles, namespace, "reader")
	w.EventuallyGone(t, kit.RoleBindings, namespace, "reader")
}

// call is a request with the token of the agent, as another user or as itself.
type call struct {
	method, path, as, body string
	headers                map[string]string
}

func (c call) String() string { return fmt.Sprintf("%s %s as %q", c.method, c.path, c.as) }

// Any client with the agent's token has only these rights with the overlay's roles: to
// write workloads as the account of the one name.
func TestWhatTheAgentMay(t *testing.T) {
	w := narrow
	namespace, other := w.namespace(t), w.namespace(t)
	for _, in := range []string{namespace, other} {
		w.account(t, in, "krake-deployer", "admin")
	}
	w.account(t, namespace, "builder", "admin")
	w.Kubectl(t, "--namespace", namespace, "create", "secret", "generic", "treasure", "--from-literal=key=value")
	send := w.sender(t)

	deployer := "system:serviceaccount:" + namespace + ":krake-deployer"
	in := func(namespace, rest string) string { return "/api/v1/namespaces/" + namespace + "/" + rest }
	object := func(kind string) string {
		return fmt.Sprintf(`{"apiVersion": "v1", "kind": %q, "metadata": {"name": "made"}}`, kind)
	}
	const patch = `[{"op": "add", "path": "/data", "value": {"a": "b"}}]`
	for _, c := range []call{
		{"POST", in(namespace, "configmaps"), deployer, object("ConfigMap"), nil},
		{"PATCH", in(namespace, "configmaps/made"), deployer, patch, nil},
		{"DELETE", in(namespace, "configmaps/made"), deployer, "", nil},
		{"GET", in(namespace, "configmaps"), "", "", nil},
		{"GET", in(namespace, "serviceaccounts/krake-deployer"), "", "", nil},
	} {
		if code, text := send(c); code >= 300 {
			t.Errorf("%s: %d %s", c, code, text)
		}
	}
	mayNot := []struct {
		why string
		call
	}{
		{"read as the account", call{"GET", in(namespace, "configmaps"), deployer, "", nil}},
		{"read Secrets as the account", call{"GET", in(namespace, "secrets"), deployer, "", nil}},
		{"read a Secret as the account", call{"GET", in(namespace, "secrets/treasure"), deployer, "", nil}},
		{"write a Secret as the account", call{"POST", in(namespace, "secrets"), deployer, object("Secret"), nil}},
		{"another kind", call{"POST", in(namespace, "limitranges"), deployer, object("LimitRange"), nil}},
		{"have a token of the account", call{"POST", in(namespace, "serviceaccounts/krake-deployer/token"), deployer, "{}", nil}},
		{"a whole object", call{"PUT", in(namespace, "configmaps/made"), deployer, object("ConfigMap"), nil}},
		{"all objects", call{"DELETE", in(namespace, "configmaps"), deployer, "", nil}},
		{"another account of the namespace", call{"POST", in(namespace, "configmaps"), "system:serviceaccount:" + namespace + ":builder", object("ConfigMap"), nil}},
		{"in another namespace than that of the account", call{"POST", in(other, "configmaps"), deployer, object("ConfigMap"), nil}},
		{"an account of Kubernetes", call{"POST", in(namespace, "configmaps"), "system:serviceaccount:kube-system:namespace-controller", object("ConfigMap"), nil}},
		{"an administrator", call{"POST", in(namespace, "configmaps"), "admin", object("ConfigMap"), nil}},
		{"the account, in a group of its own choice", call{"POST", in(namespace, "configmaps"), deployer, object("ConfigMap"), map[string]string{"Impersonate-Group": "system:masters"}}},
		{"as itself", call{"POST", in(namespace, "configmaps"), "", object("ConfigMap"), nil}},
		{"as itself, a Service", call{"POST", in(namespace, "services"), "", object("Service"), nil}},
		{"read Secrets as itself", call{"GET", in(namespace, "secrets"), "", "", nil}},
	}
	for _, test := range mayNot {
		if code, text := send(test.call); code != http.StatusForbidden {
			t.Errorf("%s: %s: %d %s", test.why, test.call, code, text)
		}
	}
	t.Logf("%d requests are refused", len(mayNot))
}

// A server without constrained impersonation, as those before 1.36, refuses the
// requests that the overlay's roles are for. It requires the full right to impersonate.
// The request is the same.
func TestServerWithoutConstraints(t *testing.T) {
	plane, err := kit.StartPlane(t.Context(), cluster.Options{APIServerArgs: []string{"--feature-gates=ConstrainedImpersonation=false"}})
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, plane.Stop()) })
	w := &world{Plane: plane}
	for _, namespace := range []string{"krake-system", "krake-agents"} {
		w.Kubectl(t, "create", "namespace", namespace)
	}
	w.Kubectl(t, "--namespace", "krake-agents", "create", "serviceaccount", "local")
	kit.Must(t, w.applyRoles(t.Context(), "strict"))
	w.account(t, "default", "krake-deployer", "edit")
	send := w.sender(t)
	create := call{"POST", "/api/v1/namespaces/default/configmaps", "system:serviceaccount:default:krake-deployer",
		`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made"}}`, nil}
	if code, text := send(create); code != http.StatusForbidden || !strings.Contains(text, "cannot impersonate resource") {
		t.Errorf("%d %s", code, text)
	}
	w.Kubectl(t, "create", "clusterrole", "krake-deployers-legacy", "--verb=impersonate", "--resource=serviceaccounts", "--resource-name=krake-deployer")
	w.Kubectl(t, "label", "clusterrole", "krake-deployers-legacy", "krake.dev/aggregate-to-agent=true")
	kit.Eventually(t, func() string {
		if code, text := send(create); code != http.StatusCreated {
			return fmt.Sprint(code, text)
		}
		return ""
	})
}

// sender sends requests with a token of the agent.
func (w *world) sender(t *testing.T) func(call) (code int, text string) {
	t.Helper()
	config := rest.AnonymousClientConfig(w.RESTConfig())
	config.BearerToken = strings.TrimSpace(w.Kubectl(t, "--namespace", "krake-agents", "create", "token", "local"))
	client, err := rest.HTTPClientFor(config)
	kit.Must(t, err)
	return func(c call) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), c.method, w.URL()+c.path, strings.NewReader(c.body))
		kit.Must(t, err)
		request.Header.Set("User-Agent", testClient)
		request.Header.Set("Content-Type", "application/json")
		if c.method == http.MethodPatch {
			request.Header.Set("Content-Type", "application/json-patch+json")
		}
		if c.as != "" {
			request.Header.Set("Impersonate-User", c.as)
		}
		for name, value := range c.headers {
			request.Header.Set(name, value)
		}
		response, err := client.Do(request)
		kit.Must(t, err)
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		kit.Must(t, err)
		var status struct{ Message string }
		if json.Unmarshal(text, &status) != nil {
			return response.StatusCode, string(text)
		}
		return response.StatusCode, status.Message
	}
}
