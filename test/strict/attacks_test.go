package strict

import (
	"testing"

	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/test/kit"
)

// Attacks with the token of an agent in strict mode, line by line as docs/attacks.md has them.
func TestAttacksOfAStrictAgent(t *testing.T) {
	w := narrow
	namespace := w.namespace(t)
	w.account(t, namespace, "krake-deployer", "admin")
	w.account(t, namespace, "builder", "")
	send := w.sender(t)
	as := func(who rest.ImpersonationConfig, request, body string) func() error {
		return func() error { return send(who, request, body) }
	}
	user := "system:serviceaccount:" + namespace + ":krake-deployer"
	deployer := rest.ImpersonationConfig{UserName: user}
	in := "POST /api/v1/namespaces/" + namespace
	const config = `{"metadata": {"name": "made"}}`
	rbac := "POST /apis/rbac.authorization.k8s.io/v1/namespaces/" + namespace
	const control = "system:serviceaccount:kube-system:krake-deployer"
	kit.EventuallyNil(t, as(deployer, in+"/configmaps?dryRun=All", config)) // the API server knows the bindings
	kit.Attacks(t, "strict agent", []kit.Attempt{
		{What: "binds the rights of krake-deployer to an outsider", Can: true, Try: as(deployer, rbac+"/rolebindings",
			`{"metadata": {"name": "x"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
			"subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "mallory"}]}`)},
		{What: "creates a Pod with another account", Can: true, Try: as(deployer, in+"/pods",
			`{"metadata": {"name": "x"}, "spec": {"serviceAccountName": "builder", "containers": [{"name": "a", "image": "a"}]}}`)},
		{What: "creates a Role with more than its rights", By: "not currently held", Try: as(deployer, rbac+"/roles",
			`{"metadata": {"name": "x"}, "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}`)},
		{What: "acts as a missing krake-deployer of kube-system", By: `User "` + control + `" cannot create`,
			Try: as(rest.ImpersonationConfig{UserName: control}, "POST /api/v1/namespaces/kube-system/configmaps", config)},
		{What: "acts as krake-deployer with another UID", By: "impersonate", Try: as(rest.ImpersonationConfig{UserName: user, UID: "x"}, in+"/configmaps", config)},
		{What: "executes a command in a Pod", By: "impersonate", Try: as(deployer, in+"/pods/x/exec?command=a", "")},
	})
}
