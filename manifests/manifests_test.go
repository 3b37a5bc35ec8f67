package manifests

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// violations calls the admission's own code for the level restricted.
func violations(t *testing.T, template *corev1.PodTemplateSpec) string {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	kit.Must(t, err)
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	result := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &template.ObjectMeta, &template.Spec))
	if result.Allowed {
		return ""
	}
	return result.ForbiddenDetail()
}

// All of our Pods satisfy the strictest of the standard levels, and our namespaces enforce it.
func TestPodSecurity(t *testing.T) {
	for _, in := range installations(t) {
		for _, object := range in.objects {
			switch object := object.(type) {
			case *appsv1.Deployment:
				check.Equal(t, in.name+": violations of "+object.Name, "", violations(t, &object.Spec.Template))
			case *appsv1.DaemonSet, *appsv1.StatefulSet, *batchv1.Job, *batchv1.CronJob, *corev1.Pod:
				t.Errorf("%s: the Pods of a %T are to be checked, too", in.name, object)
			}
		}
		for _, namespace := range all[*corev1.Namespace](t, in) {
			const enforce = "pod-security.kubernetes.io/enforce"
			if namespace.Labels[enforce] != "restricted" || namespace.Labels[enforce+"-version"] != "latest" {
				t.Errorf("%s: namespace %s does not enforce restricted:latest: %v", in.name, namespace.Name, namespace.Labels)
			}
		}
	}
}

// forbidden are rules that none of our roles may have.
var forbidden = []ban{
	{"a wildcard grants what is invented tomorrow", func(r rbacv1.PolicyRule) bool {
		return slices.Contains(slices.Concat(r.Verbs, r.Resources, r.APIGroups, r.NonResourceURLs, r.ResourceNames), "*") ||
			slices.ContainsFunc(r.Resources, func(resource string) bool { return strings.Contains(resource, "*") })
	}},
	{"escalate and bind give rights that one does not have", verbs("escalate", "bind")},
	{"impersonate without names is everybody's right", unnamed(verbs("impersonate", "impersonate:serviceaccount"))},
	{"impersonate gives all that the other one may, also to read Secrets", both(verbs("impersonate"), resources("serviceaccounts"))},
	{"users, groups and nodes are not Applications' accounts", verbs(
		"impersonate:user-info", "impersonate:arbitrary-node", "impersonate:associated-node")},
	{"Secrets are read by name, or all of them are", unnamed(both(resources("secrets"), verbs("get", "list", "watch", "deletecollection")))},
	{"Secrets are written by name, or those of others are", unnamed(both(resources("secrets"), verbs("update", "patch", "delete")))},
	{"Secrets are nothing that Applications have", both(resources("secrets"), asAnother)},
	{"whoever gets into a pod has what the pod has", resources("pods/exec", "pods/attach", "pods/portforward", "pods/proxy", "pods/ephemeralcontainers", "services/proxy")},
	{"a token is the account", resources("serviceaccounts/token")},
	{"nodes are everybody's, and their proxy is the kubelet", resources("nodes", "nodes/proxy", "nodes/status")},
	{"roles and bindings are written by those who grant", both(resources("roles", "rolebindings", "clusterroles", "clusterrolebindings"), writes)},
	{"a signed certificate can be anybody's", resources("certificatesigningrequests", "certificatesigningrequests/approval", "signers")},
	{"a namespace takes everything in it along", both(resources("namespaces", "namespaces/finalize"), writes)},
	{"a kind is everybody's, and takes its objects along", both(resources("customresourcedefinitions", "apiservices"), writes)},
	{"volumes of the cluster reach the nodes' disks", both(resources("persistentvolumes", "csidrivers", "storageclasses"), writes)},
	{"an admission configuration by another name sees or stops everything", unnamed(both(
		resources("mutatingwebhookconfigurations", "validatingwebhookconfigurations"), writes))},
	{"the policies lock webhook and agent in", both(resources(
		"validatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"), writes)},
}

// onlyStrict are rules for agents that write only as the Application's account.
var onlyStrict = []ban{
	{"roles and bindings are read by those who grant", resources("roles", "rolebindings", "clusterroles", "clusterrolebindings")},
	{"who writes as another, writes nothing as itself", func(r rbacv1.PolicyRule) bool { return asAnother(r) || verbs("impersonate:serviceaccount")(r) }},
	{"namespaces are read by name, or all of them are", unnamed(resources("namespaces"))},
}

type ban struct {
	why  string
	what ruleTest
}

type ruleTest = func(rbacv1.PolicyRule) bool

func verbs(some ...string) ruleTest {
	return func(r rbacv1.PolicyRule) bool { return intersect(r.Verbs, some) }
}

func resources(some ...string) ruleTest {
	return func(r rbacv1.PolicyRule) bool { return intersect(r.Resources, some) }
}

// writes reports rules that allow writes under the own identity.
func writes(r rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(r.Verbs, func(verb string) bool {
		return verb != "get" && verb != "list" && verb != "watch" && !isAsAnother(verb)
	})
}

// asAnother reports rules that allow writes as a service account, within its rights.
func asAnother(r rbacv1.PolicyRule) bool { return slices.ContainsFunc(r.Verbs, isAsAnother) }

func isAsAnother(verb string) bool { return strings.HasPrefix(verb, "impersonate-on:") }

func both(a, b ruleTest) ruleTest {
	return func(r rbacv1.PolicyRule) bool { return a(r) && b(r) }
}

func unnamed(test ruleTest) ruleTest {
	return func(r rbacv1.PolicyRule) bool { return len(r.ResourceNames) == 0 && test(r) }
}

func intersect(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}

// complaints returns the forbidden parts of a rule, in a strict installation or another.
func complaints(rule rbacv1.PolicyRule, strict bool) []string {
	bans := forbidden
	if !strict {
		bans = slices.Concat(forbidden, onlyStrict)
	}
	var found []string
	for _, b := range bans {
		if b.what(rule) {
			found = append(found, b.why)
		}
	}
	return found
}

// strict are the installations whose agent writes only as the Application's account.
var strict = []string{"overlays/strict", "overlays/platform", "overlays/url-sources", "made/strict-hooks", "made/strict-all", "made/strict-habitat"}

func isStrict(in installed) bool { return slices.Contains(strict, in.name) }

// None of our roles lets its holder gain more rights, and all bindings refer to our own roles.
func TestRBAC(t *testing.T) {
	for _, in := range installations(t) {
		t.Run(in.name, func(t *testing.T) {
			ours := map[string]bool{}
			for _, role := range roles(t, in) {
				ours[role.ref()] = true
				checkAggregation(t, role)
				if isOfHooks(role.ref()) || isOfHabitat(role.ref()) {
					continue // TestRightsOfHooks, TestRightsOfHabitat
				}
				for _, rule := range role.rules {
					for _, why := range complaints(rule, isStrict(in)) {
						t.Errorf("%s: %s: %v", role.ref(), why, rule)
					}
				}
			}
			for _, binding := range bindings(t, in) {
				checkBinding(t, ours, binding.RoleRef, binding.Subjects)
			}
		})
	}
}

func checkAggregation(t *testing.T, role role) {
	t.Helper()
	for label := range role.Labels {
		if strings.HasPrefix(label, "rbac.authorization.k8s.io/aggregate-to-") && !onlyOurGroups(role.rules) {
			t.Errorf("%s changes a role of every user beyond what is ours: %v", role.Name, role.rules)
		}
	}
}

func onlyOurGroups(rules []rbacv1.PolicyRule) bool {
	return !slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return !slices.Equal(r.APIGroups, []string{"krake.dev"}) && !slices.Equal(r.APIGroups, []string{"habitat.sh"})
	})
}

func checkBinding(t *testing.T, ours map[string]bool, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
	t.Helper()
	if !ours[ref.Kind+" "+ref.Name] {
		t.Errorf("%s %s, which is bound, is not ours", ref.Kind, ref.Name)
	}
	for _, subject := range subjects {
		if subject.Kind == rbacv1.GroupKind && subject.Name == "system:serviceaccounts:krake-agents" {
			continue
		}
		if subject.Kind != rbacv1.ServiceAccountKind || !slices.Contains([]string{"krake-system", "krake-agents"}, subject.Namespace) {
			t.Errorf("%s %s is bound to %s %s/%s, which is not ours", ref.Kind, ref.Name, subject.Kind, subject.Namespace, subject.Name)
		}
	}
}

// In strict mode the agent writes as itself only its own objects. For every other resource
// that it may read, it may write as another account.
func TestStrictAgentsWriteAsOthers(t *testing.T) {
	for _, in := range installations(t) {
		if !isStrict(in) {
			continue
		}
		read, asOthers := map[string]bool{}, map[string]bool{}
		for _, role := range all[*rbacv1.ClusterRole](t, in) {
			if role.Labels["krake.dev/aggregate-to-agent"] == "" {
				continue
			}
			for _, rule := range role.Rules {
				if writes(rule) && !verbs("impersonate:serviceaccount")(rule) && !slices.Equal(rule.Resources, []string{"events"}) {
					t.Errorf("%s, %s: the agent writes as itself: %v", in.name, role.Name, rule)
				}
				for _, resource := range rule.Resources {
					read[resource] = read[resource] || verbs("get")(rule) && len(rule.ResourceNames) == 0
					asOthers[resource] = asOthers[resource] || asAnother(rule)
				}
			}
		}
		delete(asOthers, "customresourcedefinitions") // always readable
		delete(read, "customresourcedefinitions")
		if diff := cmp.Diff(read, asOthers); diff != "" || len(read) < 15 {
			t.Errorf("%s: what the agent reads and what it writes as others (-read +written):\n%s", in.name, diff)
		}
	}
}

// The webhook is called only for Applications, and its time-out is the usual one. Other ConfigMaps
// never depend on it.
func TestWebhookConfiguration(t *testing.T) {
	configurations := all[*admissionregistrationv1.MutatingWebhookConfiguration](t, installation(t, "base"))
	if len(configurations) != 1 || len(configurations[0].Webhooks) != 1 {
		t.Fatalf("more than one webhook: %v", configurations)
	}
	webhook := configurations[0].Webhooks[0]
	var (
		fail       = admissionregistrationv1.Fail
		equivalent = admissionregistrationv1.Equivalent
		none       = admissionregistrationv1.SideEffectClassNone
		ifNeeded   = admissionregistrationv1.IfNeededReinvocationPolicy
		seconds    = int32(10)
		namespaced = admissionregistrationv1.NamespacedScope
	)
	want := admissionregistrationv1.MutatingWebhook{
		Name: "application.krake.dev",
		// An Application without its status documents must not be admitted.
		FailurePolicy:  &fail,
		TimeoutSeconds: &seconds,
		SideEffects:    &none,
		// If another webhook changes the manifest afterwards, the Application is completed
		// again.
		ReinvocationPolicy: &ifNeeded,
		MatchPolicy:        &equivalent,
		Rules: []admissionregistrationv1.RuleWithOperations{{
			// Not DELETE: while the webhook is down, Applications can be deleted.
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}, Scope: &namespaced},
		}},
		// The namespaces that a cluster, and the webhook itself, need in order to start.
		NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"kube-system", "krake-system", "krake-agents"},
		}}},
		AdmissionReviewVersions: []string{"v1"},
	}
	got := webhook
	got.ClientConfig, got.MatchConditions = admissionregistrationv1.WebhookClientConfig{}, nil
	check.Equal(t, "webhook", want, got)
	if len(webhook.MatchConditions) != 1 {
		t.Errorf("conditions: %v", webhook.MatchConditions)
	}
	if !strings.Contains(webhook.MatchConditions[0].Expression, `[object, oldObject].exists(o, o != null &&`) {
		t.Errorf("an Application that loses its annotation does not meet the webhook: %s", webhook.MatchConditions[0].Expression)
	}
}

// mayBeAbsent matches an unguarded access to an optional field.
var mayBeAbsent = regexp.MustCompile(`\.(annotations|labels|finalizers|ownerReferences|deletionTimestamp|data|binaryData|groups|username)\b`)

// nullSafe returns an error for a condition that could fail. The condition is evaluated for
// every ConfigMap of the cluster, and a failure would refuse the ConfigMap.
func nullSafe(expression string) error {
	if access := mayBeAbsent.FindString(expression); access != "" {
		return fmt.Errorf("%s need not be there: use .?", access)
	}
	for _, version := range []string{"object", "oldObject"} {
		if regexp.MustCompile(`\b`+version+`\.`).MatchString(expression) &&
			!regexp.MustCompile(`\b`+version+` != null`).MatchString(expression) {
			return fmt.Errorf("%s may be null", version)
		}
	}
	if regexp.MustCompile(`\bo\.`).MatchString(expression) && !strings.Contains(expression, "o != null") {
		return errors.New("o may be null")
	}
	if strings.Contains(expression, "[?") && !regexp.MustCompile(`\.(hasValue\(\)|orValue\()`).MatchString(expression) {
		return errors.New("an optional is no boolean")
	}
	return nil
}

// A condition that fails blocks every ConfigMap, or every Lease, of a cluster.
func TestConditionsAreNullSafe(t *testing.T) {
	in := installation(t, "overlays/habitat")
	for _, configuration := range all[*admissionregistrationv1.MutatingWebhookConfiguration](t, in) {
		for _, webhook := range configuration.Webhooks {
			checkConditions(t, webhook.Name, webhook.MatchConditions)
		}
	}
	for _, policy := range all[*admissionregistrationv1.ValidatingAdmissionPolicy](t, in) {
		checkConditions(t, policy.Name, policy.Spec.MatchConditions)
	}
}

func checkConditions(t *testing.T, name string, conditions []admissionregistrationv1.MatchCondition) {
	t.Helper()
	if len(conditions) == 0 {
		t.Errorf("%s is evaluated for every object of the kind", name)
	}
	for _, condition := range conditions {
		if err := nullSafe(condition.Expression); err != nil {
			t.Errorf("%s, condition %s: %v: %s", name, condition.Name, err, condition.Expression)
		}
	}
}

// Webhook, agents and controllers keep working while nodes are drained and Pods are replaced.
func TestTwoOfEach(t *testing.T) {
	for _, in := range installations(t) {
		for _, deployment := range some[*appsv1.Deployment](in) {
			pod := deployment.Spec.Template.Spec
			spread := pod.TopologySpreadConstraints
			if len(spread) != 1 || spread[0].TopologyKey != corev1.LabelHostname || !selects(t, spread[0].LabelSelector, deployment.Spec.Template.Labels) {
				t.Errorf("%s: %s is spread by %v", in.name, deployment.Name, spread)
			}
			if in.name != "overlays/e2e" && *deployment.Spec.Replicas != 2 {
				t.Errorf("%s: %s has %d replicas", in.name, deployment.Name, *deployment.Spec.Replicas)
			}
			of := pod.Containers[0].Resources
			if of.Requests.Cpu().IsZero() || of.Requests.Memory().IsZero() || of.Limits.Memory().IsZero() {
				t.Errorf("%s: %s has no requests or no limits: %v", in.name, deployment.Name, of)
			}
		}
	}
}

// The webhook stays when the cluster runs out of resources, and answers its requests before it
// ends.
func TestTheWebhookStays(t *testing.T) {
	for _, name := range []string{"base", "overlays/hub"} {
		in := installation(t, name)
		deployments := all[*appsv1.Deployment](t, in)
		deployment := deployments[slices.IndexFunc(deployments, func(d *appsv1.Deployment) bool { return d.Name == "krake-webhook" })]
		pod := deployment.Spec.Template.Spec
		if pod.PriorityClassName != "system-cluster-critical" {
			t.Errorf("%s: the webhook has priority %q", name, pod.PriorityClassName)
		}
		drained := pod.Containers[0].Lifecycle.PreStop.Sleep.Seconds + 30 // and the time that controller-runtime waits
		if *pod.TerminationGracePeriodSeconds <= drained {
			t.Errorf("%s: the webhook is killed after %d s and needs up to %d s", name, *pod.TerminationGracePeriodSeconds, drained)
		}
		budgets := all[*policyv1.PodDisruptionBudget](t, in)
		if len(budgets) != 1 || budgets[0].Spec.MinAvailable.IntValue() != 1 || !selects(t, budgets[0].Spec.Selector, deployment.Spec.Template.Labels) {
			t.Errorf("%s: the webhook's disruption budget is %v", name, budgets)
		}
	}
}

func selects(t *testing.T, selector *metav1.LabelSelector, of map[string]string) bool {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	kit.Must(t, err)
	return s.Matches(labels.Set(of))
}

// Each of our Pods is reachable at the ports that it names, including the kubelet's probes,
// and reaches DNS and API servers. Everything else is closed.
func TestNetworkPolicy(t *testing.T) {
	for _, in := range installations(t) {
		for _, deployment := range some[*appsv1.Deployment](in) {
			closed, open, out := reach(t, in, deployment)
			if !closed {
				t.Errorf("%s: the namespace of %s is not closed by default", in.name, deployment.Name)
			}
			for _, port := range deployment.Spec.Template.Spec.Containers[0].Ports {
				if !open[int(port.ContainerPort)] {
					t.Errorf("%s: port %s of %s is not reached: %v", in.name, port.Name, deployment.Name, open)
				}
			}
			if diff := cmp.Diff(outlets(deployment), out); diff != "" {
				t.Errorf("%s: ports that %s reaches (-want +got):\n%s", in.name, deployment.Name, diff)
			}
		}
	}
}

// outlets returns the ports that a Deployment has to reach, sorted: DNS, API servers, and
// those that its flags require.
func outlets(deployment *appsv1.Deployment) []string {
	outlets := []string{"443", "53", "53", "6443"}
	if flag(deployment, "hooks") == "true" {
		outlets = append(outlets, "1-65535 of Pods")
	}
	if flag(deployment, "url-source-hosts") != "" {
		outlets = append(outlets, "443 of 0.0.0.0/0, 2000::/3", "53", "53")
	}
	slices.Sort(outlets)
	return outlets
}

// flag returns the value of a Deployment's flag, or "" if it is not set.
func flag(deployment *appsv1.Deployment, name string) string {
	for _, argument := range deployment.Spec.Template.Spec.Containers[0].Args {
		if value, ok := strings.CutPrefix(argument, "--"+name+"="); ok {
			return value
		}
	}
	return ""
}

// isOn reports whether a Deployment has a flag without a value.
func isOn(deployment *appsv1.Deployment, name string) bool {
	return slices.Contains(deployment.Spec.Template.Spec.Containers[0].Args, "--"+name)
}

// reach reports whether everything but the named ports is closed, which ports are open, and
// which ports the Pods reach.
func reach(t *testing.T, in installed, deployment *appsv1.Deployment) (closed bool, open map[int]bool, out []string) {
	t.Helper()
	open = map[int]bool{}
	for _, policy := range all[*networkingv1.NetworkPolicy](t, in) {
		if policy.Namespace != deployment.Namespace || !selects(t, &policy.Spec.PodSelector, deployment.Spec.Template.Labels) {
			continue
		}
		if len(policy.Spec.PodSelector.MatchLabels) == 0 && len(policy.Spec.Ingress)+len(policy.Spec.Egress) == 0 && len(policy.Spec.PolicyTypes) == 2 {
			closed = true
		}
		for _, rule := range policy.Spec.Ingress {
			for _, port := range rule.Ports {
				open[port.Port.IntValue()] = true
			}
		}
		for _, rule := range policy.Spec.Egress {
			for _, port := range rule.Ports {
				out = append(out, outlet(port, rule.To))
			}
		}
	}
	slices.Sort(out)
	return closed, open, out
}

// outlet writes a port, and its peers unless they are unrestricted.
func outlet(port networkingv1.NetworkPolicyPort, of []networkingv1.NetworkPolicyPeer) string {
	text := port.Port.String()
	if port.EndPort != nil {
		text += fmt.Sprintf("-%d", *port.EndPort)
	}
	var peers []string
	for _, peer := range of {
		switch {
		case peer.IPBlock != nil:
			peers = append(peers, peer.IPBlock.CIDR)
		case reflect.DeepEqual(peer, ofAllNamespaces):
			peers = append(peers, "Pods")
		default:
			peers = append(peers, peer.String())
		}
	}
	if len(peers) > 0 {
		text += " of " + strings.Join(peers, ", ")
	}
	return text
}

var ofAllNamespaces = networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{}}
