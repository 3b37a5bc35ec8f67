package policies

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/test/kit"
)

const dryRuns = "krake-webhook-dry-runs"

// The webhook tries to create objects, and creates none.
func TestTheWebhookCreatesDryRunsOnly(t *testing.T) {
	namespace := server.NewNamespace(t, "dry-runs")
	client := identity{namespace: "krake-system", name: "krake-webhook"}.mustClient(t)
	core, apps := "/api/v1/namespaces/"+namespace, "/apis/apps/v1/namespaces/"+namespace
	const meta, pod = `"metadata": {"name": "web"}`, `"spec": {"containers": [{"name": "web", "image": "web"}]}`
	for path, body := range map[string]string{
		core + "/configmaps":      "{" + meta + "}",
		core + "/serviceaccounts": "{" + meta + "}",
		core + "/pods":            "{" + meta + ", " + pod + "}",
		apps + "/deployments": "{" + meta + `, "spec": {"selector": {"matchLabels": {"app": "web"}},
			"template": {"metadata": {"labels": {"app": "web"}}, ` + pod + "}}}",
	} {
		t.Run(path, func(t *testing.T) {
			err := kit.Send(t, client, "POST "+path, body)()
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "the webhook creates no objects") {
				t.Errorf("created: %v", err)
			}
			if err := kit.Send(t, client, "POST "+path+"?dryRun=All", body)(); err != nil {
				t.Errorf("dry run: %v", err)
			}
			kit.Must(t, kit.Send(t, server, "POST "+path, body)()) // others still create it
		})
	}
}

// The webhook may try what agents may write, and its policy covers all of it.
func TestTheWebhookTriesTheKindsOfTheAgent(t *testing.T) {
	role, err := server.RbacV1().ClusterRoles().Get(t.Context(), dryRuns, metav1.GetOptions{})
	kit.Must(t, err)
	workloads, err := server.RbacV1().ClusterRoles().Get(t.Context(), "krake-workloads", metav1.GetOptions{})
	kit.Must(t, err)
	policy, err := server.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(t.Context(), dryRuns, metav1.GetOptions{})
	kit.Must(t, err)
	tried := slices.DeleteFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.APIGroups, authorizationv1.GroupName) })
	written := slices.DeleteFunc(workloads.Rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.APIGroups, "krake.dev") })
	if diff := cmp.Diff(withVerb(written, "create"), tried); diff != "" {
		t.Errorf("-krake-workloads +%s:\n%s", dryRuns, diff)
	}
	for _, rule := range tried {
		for _, covered := range policy.Spec.MatchConstraints.ResourceRules {
			if !isSubset(rule.APIGroups, covered.APIGroups) || !isSubset(rule.Resources, covered.Resources) {
				t.Errorf("the policy does not cover %v", rule)
			}
		}
	}
}

// withVerb returns rules with this verb only.
func withVerb(rules []rbacv1.PolicyRule, verb string) []rbacv1.PolicyRule {
	rules = slices.Clone(rules)
	for i := range rules {
		rules[i].Verbs = []string{verb}
	}
	return rules
}

func isSubset(of, all []string) bool {
	return !slices.ContainsFunc(of, func(one string) bool { return !slices.Contains(all, one) })
}
