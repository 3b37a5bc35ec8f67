package strict

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
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
	w.gone(t, namespace, "app", "app-greedy")
	w.EventuallyGone(t, kit.Roles, namespace, "reader")
	w.EventuallyGone(t, kit.RoleBindings, namespace, "reader")
}

// Any client with the agent's token has only these rights with the overlay's roles: to
// write workloads as the account of the one name.
func TestWhatTheAgentMay(t *testing.T) {
	w := narrow
	namespace, other := w.namespace(t), w.namespace(t)
	for _, in := range []string{namespace, other} {
		w.account(t, in, "krake-deployer", "admin")
	}
	w.account(t, namespace, "builder", "admin")
	w.Make(t, namespace, "{apiVersion: v1, kind: Secret, metadata: {name: treasure}, stringData: {key: value}}")
	send := w.sender(t)

	user := func(name string) rest.ImpersonationConfig { return rest.ImpersonationConfig{UserName: name} }
	itself, deployer := user(""), user("system:serviceaccount:"+namespace+":krake-deployer")
	master := deployer
	master.Groups = []string{"system:masters"}
	in := "/api/v1/namespaces/" + namespace + "/"
	object := func(kind string) string {
		return fmt.Sprintf(`{"apiVersion": "v1", "kind": %q, "metadata": {"name": "made"}}`, kind)
	}
	const patch = `[{"op": "add", "path": "/data", "value": {"a": "b"}}]`
	for _, c := range []struct {
		request string
		as      rest.ImpersonationConfig
		body    string
	}{
		{"POST " + in + "configmaps", deployer, object("ConfigMap")},
		{"PATCH " + in + "configmaps/made", deployer, patch},
		{"DELETE " + in + "configmaps/made", deployer, ""},
		{"GET " + in + "configmaps", itself, ""},
		{"GET " + in + "serviceaccounts/krake-deployer", itself, ""},
	} {
		if err := send(c.as, c.request, c.body); err != nil {
			t.Errorf("%s as %q: %v", c.request, c.as.UserName, err)
		}
	}
	mayNot := []struct {
		why, request string
		as           rest.ImpersonationConfig
		body         string
	}{
		{"read as the account", "GET " + in + "configmaps", deployer, ""},
		{"read Secrets as the account", "GET " + in + "secrets", deployer, ""},
		{"read a Secret as the account", "GET " + in + "secrets/treasure", deployer, ""},
		{"write a Secret as the account", "POST " + in + "secrets", deployer, object("Secret")},
		{"another kind", "POST " + in + "limitranges", deployer, object("LimitRange")},
		{"have a token of the account", "POST " + in + "serviceaccounts/krake-deployer/token", deployer, "{}"},
		{"a whole object", "PUT " + in + "configmaps/made", deployer, object("ConfigMap")},
		{"all objects", "DELETE " + in + "configmaps", deployer, ""},
		{"another account of the namespace", "POST " + in + "configmaps", user("system:serviceaccount:" + namespace + ":builder"), object("ConfigMap")},
		{"in another namespace than that of the account", "POST /api/v1/namespaces/" + other + "/configmaps", deployer, object("ConfigMap")},
		{"an account of Kubernetes", "POST " + in + "configmaps", user("system:serviceaccount:kube-system:namespace-controller"), object("ConfigMap")},
		{"an administrator", "POST " + in + "configmaps", user("admin"), object("ConfigMap")},
		{"the account, in a group of its own choice", "POST " + in + "configmaps", master, object("ConfigMap")},
		{"as itself", "POST " + in + "configmaps", itself, object("ConfigMap")},
		{"as itself, a Service", "POST " + in + "services", itself, object("Service")},
		{"read Secrets as itself", "GET " + in + "secrets", itself, ""},
	}
	for _, test := range mayNot {
		if err := send(test.as, test.request, test.body); !apierrors.IsForbidden(err) {
			t.Errorf("%s: %s as %q: %v", test.why, test.request, test.as.UserName, err)
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
		w.CreateNamespace(t, namespace)
	}
	w.account(t, "krake-agents", "local", "")
	kit.Must(t, w.applyRoles(t.Context(), "strict"))
	w.account(t, "default", "krake-deployer", "edit")
	send := w.sender(t)
	create := func() error {
		deployer := rest.ImpersonationConfig{UserName: "system:serviceaccount:default:krake-deployer"}
		return send(deployer, "POST /api/v1/namespaces/default/configmaps", `{"metadata": {"name": "made"}}`)
	}
	if err := create(); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "cannot impersonate resource") {
		t.Error(err)
	}
	w.Make(t, "", `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: krake-deployers-legacy, labels: {krake.dev/aggregate-to-agent: "true"}}
rules: [{apiGroups: [""], resources: [serviceaccounts], resourceNames: [krake-deployer], verbs: [impersonate]}]
`)
	kit.EventuallyNil(t, create)
}

// sender returns a function that makes a request with a token of the agent, as another user.
func (w *world) sender(t *testing.T) func(who rest.ImpersonationConfig, request, body string) error {
	t.Helper()
	token := w.Token(t, "krake-agents", "local")
	return func(who rest.ImpersonationConfig, request, body string) error {
		config := rest.AnonymousClientConfig(w.RESTConfig())
		config.BearerToken, config.UserAgent, config.Impersonate = token, testClient, who
		client, err := kubernetes.NewForConfig(config)
		kit.Must(t, err)
		return kit.Send(t, client, request, body)()
	}
}
