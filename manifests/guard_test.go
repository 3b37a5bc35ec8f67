package manifests

import (
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/test/check"
)

// guarded is an installation whose agent serves the guard.
type guarded struct {
	// agent is the ServiceAccount of the agent, and guard the name of everything of the guard.
	agent, guard string
}

// withGuard are the installations whose agent serves the guard.
var withGuard = map[string]guarded{
	"overlays/guard":     {"local", "krake-guard"},
	"made/guarded-spoke": {"cluster-name", "krake-guard-cluster-name"},
}

func isOfGuard(name string) bool { return strings.HasPrefix(name, "krake-guard") }

// The guard has rights on its own Secret and its own configuration. The role in the namespace
// of the agents has no right on other Secrets there.
func TestRightsOfTheGuard(t *testing.T) {
	for name, on := range withGuard {
		in := installation(t, name)
		want := map[string][]rbacv1.PolicyRule{
			"Role krake-agents/" + on.guard: {{
				APIGroups: []string{""}, Resources: []string{"secrets"},
				ResourceNames: []string{on.guard + "-certificate"}, Verbs: []string{"get", "list", "watch", "update"},
			}},
			"ClusterRole /" + on.guard: {{
				APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"validatingwebhookconfigurations"},
				ResourceNames: []string{on.guard}, Verbs: []string{"list", "watch", "patch"},
			}},
		}
		got := map[string][]rbacv1.PolicyRule{}
		for _, role := range roles(t, in) {
			if isOfGuard(role.Name) || slices.ContainsFunc(role.rules, resources("validatingwebhookconfigurations")) {
				got[role.kind+" "+role.Namespace+"/"+role.Name] = role.rules
			}
			if isOfGuard(role.Name) && role.kind == "ClusterRole" {
				check.Equal(t, name+": labels of "+role.Name, map[string]string{
					"app.kubernetes.io/instance": on.agent, "app.kubernetes.io/part-of": "krake-observer",
				}, role.Labels) // with another label, it could become a part of another role
			}
		}
		check.Equal(t, name+": roles", want, got)
	}
}

// The agent alone has these rights. Its Secret is in its own namespace.
func TestHoldersOfTheRightsOfTheGuard(t *testing.T) {
	for name, on := range withGuard {
		in, account := installation(t, name), rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: on.agent, Namespace: "krake-agents"}
		want := map[string][]rbacv1.Subject{
			"krake-agents: Role " + on.guard: {account},
			": ClusterRole " + on.guard:      {account},
		}
		got := map[string][]rbacv1.Subject{}
		for _, binding := range bindings(t, in) {
			if isOfGuard(binding.RoleRef.Name) || isOfGuard(binding.Name) {
				got[binding.Namespace+": "+binding.RoleRef.Kind+" "+binding.RoleRef.Name] = binding.Subjects
			}
		}
		check.Equal(t, name+": bindings", want, got)
		for _, agent := range deployments(in, "krake-agent") {
			check.Equal(t, name+": account of the agent", on.agent, agent.Spec.Template.Spec.ServiceAccountName)
		}
	}
}

// The API server asks the guard about changes and deletions of objects of Applications, and
// about their scale. Without an answer, it lets each request pass.
func TestConfigurationOfTheGuard(t *testing.T) {
	namespaced, every := admissionregistrationv1.NamespacedScope, admissionregistrationv1.AllScopes
	rule := func(group, version string, scope *admissionregistrationv1.ScopeType, resources ...string) admissionregistrationv1.Rule {
		return admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: resources, Scope: scope}
	}
	onUpdate, onDelete := admissionregistrationv1.Update, admissionregistrationv1.Delete
	type rules = []admissionregistrationv1.RuleWithOperations
	objects := rules{{Operations: []admissionregistrationv1.OperationType{onUpdate, onDelete}, Rule: rule("*", "*", &every, "*")}}
	scales := rules{
		{Operations: []admissionregistrationv1.OperationType{onUpdate}, Rule: rule("apps", "v1", &namespaced, "deployments/scale", "replicasets/scale", "statefulsets/scale")},
		{Operations: []admissionregistrationv1.OperationType{onUpdate}, Rule: rule("", "v1", &namespaced, "replicationcontrollers/scale")},
	}
	for name, on := range withGuard {
		configurations := all[*admissionregistrationv1.ValidatingWebhookConfiguration](t, installation(t, name))
		if len(configurations) != 1 {
			t.Fatalf("%s: more than one configuration: %v", name, configurations)
		}
		owned := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "krake.dev/owned-by", Operator: metav1.LabelSelectorOpExists}}}
		check.Equal(t, name+": webhooks", []admissionregistrationv1.ValidatingWebhook{
			webhookOfGuard(on, "objects.guard.krake.dev", objects, owned),
			webhookOfGuard(on, "scales.guard.krake.dev", scales, nil), // a Scale has no labels of its object
		}, configurations[0].Webhooks)
		for _, webhook := range configurations[0].Webhooks {
			checkConditions(t, name+": "+webhook.Name, webhook.MatchConditions)
		}
	}
}

func webhookOfGuard(on guarded, name string, rules []admissionregistrationv1.RuleWithOperations, objects *metav1.LabelSelector) admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name: name,
		// The agent reverts what passes while the guard is down. Until then, requests wait for 2 s
		// at most.
		FailurePolicy: new(admissionregistrationv1.Ignore), TimeoutSeconds: new(int32(2)),
		// An Event about break glass, but none for a dry run.
		SideEffects: new(admissionregistrationv1.SideEffectClassNoneOnDryRun),
		ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{
			Namespace: "krake-agents", Name: on.guard, Path: new("/guard"), Port: new(int32(443)),
		}},
		// The namespaces that a cluster, the webhook and the agents need in order to start.
		NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"kube-system", "krake-system", "krake-agents"},
		}}},
		ObjectSelector: objects,
		Rules:          rules,
		// Agents make the changes that the guard protects. The system reacts to changes that passed.
		MatchConditions: []admissionregistrationv1.MatchCondition{
			{Name: "is-not-an-agent", Expression: `!("system:serviceaccounts:krake-agents" in request.userInfo.?groups.orValue([]))`},
			{Name: "is-not-the-system", Expression: `!request.userInfo.?groups.orValue([]).exists(group, group in ["system:serviceaccounts:kube-system", "system:nodes"]) && ` +
				`!(request.userInfo.?username.orValue("") in ["system:kube-controller-manager", "system:kube-scheduler", "system:apiserver"])`},
		},
		AdmissionReviewVersions: []string{"v1"},
	}
}

// The API server reaches the agent by the Service of the configuration, at the port where the
// agent serves the guard.
func TestTheEndpointOfTheGuard(t *testing.T) {
	for _, in := range installations(t) {
		on, isGuarded := withGuard[in.name]
		for _, agent := range deployments(in, "krake-agent") {
			if (flag(agent, "guard") == "true") != isGuarded {
				t.Errorf("%s: the agent serves the guard: %t", in.name, !isGuarded)
			}
			if isGuarded {
				check.Equal(t, in.name+": --guard-name", on.guard, flag(agent, "guard-name"))
				service := checkEndpoint(t, in, agent, "guard", nil)
				check.Equal(t, in.name+": name of the Service", on.guard, service.Name)
			}
		}
	}
}
