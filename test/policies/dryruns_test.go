package policies

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/krake-observer/krake-observer/test/kit"
)

const dryRuns = "krake-webhook-dry-runs"

// The webhook tries to create objects, and creates none.
func TestTheWebhookCreatesDryRunsOnly(t *testing.T) {
	namespace := server.NewNamespace(t, "dry-runs")
	client, err := identity{namespace: "krake-system", name: "krake-webhook"}.client(t.Context())
	kit.Must(t, err)
	meta := metav1.ObjectMeta{Name: "web"}
	pod := corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}}
	labels := map[string]string{"app": "web"}
	for what, create := range map[string]func(kubernetes.Interface, metav1.CreateOptions) error{
		"a ConfigMap": func(client kubernetes.Interface, options metav1.CreateOptions) error {
			return kit.ErrorOf(client.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: meta}, options))
		},
		"a ServiceAccount": func(client kubernetes.Interface, options metav1.CreateOptions) error {
			return kit.ErrorOf(client.CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: meta}, options))
		},
		"a Pod": func(client kubernetes.Interface, options metav1.CreateOptions) error {
			return kit.ErrorOf(client.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{ObjectMeta: meta, Spec: pod}, options))
		},
		"a Deployment": func(client kubernetes.Interface, options metav1.CreateOptions) error {
			return kit.ErrorOf(client.AppsV1().Deployments(namespace).Create(t.Context(), &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
			}}, options))
		},
	} {
		t.Run(what, func(t *testing.T) {
			err := create(client, metav1.CreateOptions{})
			if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "the webhook creates no objects") {
				t.Errorf("created: %v", err)
			}
			if err := create(client, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
				t.Errorf("dry run: %v", err)
			}
			kit.Must(t, create(server, metav1.CreateOptions{})) // others still create it
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
