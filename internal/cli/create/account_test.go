package create

import (
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit/clitest"
)

func TestAccountSaysWhatItGrants(t *testing.T) {
	const role = `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: configs}
rules:
- {apiGroups: [""], resources: [configmaps], resourceNames: [a, b], verbs: [get, patch]}
- {apiGroups: [apps], resources: [deployments, daemonsets], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: names}
rules: [{apiGroups: [""], resources: [namespaces], verbs: [create]}]
`
	for grant, want := range map[string]string{
		"view":          "what the ClusterRole view allows, in namespace shop (dry run)\n",
		"cluster-admin": "everything, in all namespaces (dry run)\n",
		"roles.yaml": "in namespace shop: get, patch configmaps called a, b; create deployments.apps, daemonsets.apps (dry run)\n" +
			"in all namespaces: create namespaces (dry run)\n",
	} {
		t.Run(grant, func(t *testing.T) {
			out, says, _ := clitest.Invoke(t, Commands, map[string]string{"roles.yaml": role}, "account", "own", "--namespace", "shop", "--grant", grant, "--dry-run=client")
			check.Equal(t, "output", want, strings.ReplaceAll(out, "serviceaccount shop/own: ", ""))
			warning := map[string]string{
				"cluster-admin": "Warning: cluster-admin: all that can write as this account can change every object of the cluster, the policies and rights of Krake Observer included\n",
			}[grant]
			check.Equal(t, "errors", warning, says)
		})
	}
	out, _, _ := clitest.Invoke(t, Commands, map[string]string{"roles.yaml": role}, "account", "--namespace", "shop", "--grant", "roles.yaml", "--dry-run=client", "-o", "yaml")
	for _, want := range []string{"  kind: RoleBinding\n  metadata:\n    name: krake-deployer-configs\n    namespace: shop\n", "  kind: ClusterRoleBinding\n  metadata:\n    name: shop-krake-deployer-names\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in %s", want, out)
		}
	}
}

func TestAccountRefusesWhatGrantsNothing(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"no file":       {"", "--grant is view, edit, admin, cluster-admin, or a file with Roles and ClusterRoles: "},
		"another kind":  {document("ConfigMap", ""), "roles.yaml:1: ConfigMap a grants nothing: name a file with Roles and ClusterRoles only"},
		"a binding":     {"apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: a}\n", "roles.yaml:1: RoleBinding a grants nothing"},
		"unknown field": {"apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: a}\nrule: []\n", `unknown field "rule"`},
		"empty":         {"# nothing\n", "roles.yaml: there is no Role and no ClusterRole in it"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{}
			if c.file != "" {
				files["roles.yaml"] = c.file
			}
			out, says, status := clitest.Invoke(t, Commands, files, "account", "--namespace", "shop", "--grant", "roles.yaml", "--dry-run=client")
			if out != "" || status != 2 || !strings.Contains(says, c.want) {
				t.Errorf("want %q, got %d %q %q", c.want, status, out, says)
			}
		})
	}
	for arguments, want := range map[string]string{"": "grant", "--grant=edit a b": "at most 1", "--grant=edit --dry-run=some": `--dry-run: "some" has to be one of`} {
		if _, says, status := clitest.Invoke(t, Commands, nil, append([]string{"account"}, strings.Fields(arguments)...)...); status != 2 || !strings.Contains(says, want) {
			t.Errorf("%q: want %q, got %d %q", arguments, want, status, says)
		}
	}
}
