package manifests

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/krake-observer/krake-observer/test/check"
)

// withHooks are the installations whose agent has hooks.
var withHooks = []string{"overlays/hooks", "made/hooks", "made/strict-hooks", "made/strict-all", "made/hooks-of-a-spoke"}

func deployments(in installed, name string) []*appsv1.Deployment {
	return slices.DeleteFunc(some[*appsv1.Deployment](in), func(d *appsv1.Deployment) bool {
		return d.Spec.Template.Labels["app.kubernetes.io/name"] != name
	})
}

// isOfHooks reports the role that names no Secrets, because their names are unknown before
// they exist. Its rights are listed exactly instead.
func isOfHooks(role string) bool { return role == "ClusterRole krake-hooks" }

// The rights of the hooks are listed exactly. Only one role allows access to Secrets without
// names. It is bound only in namespaces, and is no part of the agents' cluster-wide rights.
func TestRightsOfHooks(t *testing.T) {
	rule := func(resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, Verbs: verbs}
	}
	secrets, asOthers := rule("secrets", "get", "create", "patch", "delete"), rule("secrets", "get",
		"impersonate-on:serviceaccount:create", "impersonate-on:serviceaccount:patch", "impersonate-on:serviceaccount:delete")
	authority, deletion := rule("secrets", "get", "update"), rule("configmaps", "delete")
	authority.ResourceNames = []string{"krake-hooks-ca"}
	for _, in := range installations(t) {
		want := map[string]rbacv1.PolicyRule{}
		if slices.Contains(withHooks, in.name) {
			want["Role krake-hooks-ca"], want["ClusterRole krake-hooks"], want["ClusterRole krake-hooks-hub"] = authority, secrets, deletion
		}
		if isStrict(in) && slices.Contains(withHooks, in.name) {
			want["ClusterRole krake-hooks"] = asOthers
		}
		switch in.name {
		case "made/hooks-of-a-spoke":
			delete(want, "ClusterRole krake-hooks-hub")
		case "enrolment":
			want["Role krake-hooks-cluster-name"] = deletion
		}
		check.Equal(t, in.name+": roles", want, rulesOfHooks(t, in))
		for _, binding := range some[*rbacv1.ClusterRoleBinding](in) {
			if strings.HasPrefix(binding.RoleRef.Name, "krake-hooks") {
				t.Errorf("%s: %s is bound everywhere", in.name, binding.RoleRef.Name)
			}
		}
	}
}

// rulesOfHooks returns the rules of the hooks' roles. Each role has one rule and is part of no
// other role.
func rulesOfHooks(t *testing.T, in installed) map[string]rbacv1.PolicyRule {
	t.Helper()
	rules := map[string]rbacv1.PolicyRule{}
	for _, role := range roles(t, in) {
		if !strings.HasPrefix(role.Name, "krake-hooks") {
			continue
		}
		if len(role.rules) != 1 || strings.Contains(fmt.Sprint(role.Labels), "aggregate-to") {
			t.Fatalf("%s: %s has the labels %v and the rules %v", in.name, role.ref(), role.Labels, role.rules)
		}
		rules[role.ref()] = role.rules[0]
	}
	return rules
}

// The hooks have rights only in the configured namespaces. The rights belong to the agent, by
// its name there.
func TestNamespacesWithHooks(t *testing.T) {
	type bindings = map[string]rbacv1.Subject
	local := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: "local", Namespace: "krake-agents"}
	spoke := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: "cluster-name", Namespace: "krake-agents"}
	const authority, secrets, deletion = "krake-agents: Role krake-hooks-ca", "demo: ClusterRole krake-hooks", "demo: ClusterRole krake-hooks-hub" //nolint:gosec // names of roles
	inDemo := bindings{authority: local, secrets: local, deletion: local}
	want := map[string]bindings{
		"overlays/hooks": {authority: local}, "made/hooks": inDemo, "made/strict-hooks": inDemo, "made/strict-all": inDemo,
		"made/hooks-of-a-spoke": {authority: spoke}, "enrolment": {"hub-namespace: Role krake-hooks-cluster-name": spoke},
	}
	for _, in := range installations(t) {
		got := bindings{}
		for _, binding := range some[*rbacv1.RoleBinding](in) {
			if strings.HasPrefix(binding.RoleRef.Name, "krake-hooks") && len(binding.Subjects) == 1 {
				got[binding.Namespace+": "+binding.RoleRef.Kind+" "+binding.RoleRef.Name] = binding.Subjects[0]
			}
		}
		check.Equal(t, in.name+": bindings", want[in.name], got, cmpopts.EquateEmpty())
	}
}

// Pods find the endpoint by the name in its certificate and in their Secrets, and reach the
// agent of their own cluster.
func TestTheEndpointOfHooks(t *testing.T) {
	for _, in := range installations(t) {
		for _, deployment := range deployments(in, "krake-agent") {
			on := flag(deployment, "hooks") == "true"
			if on != slices.Contains(withHooks, in.name) {
				t.Errorf("%s: the agent has hooks: %t", in.name, on)
			}
			if on {
				service := checkEndpoint(t, in, deployment, "hooks", []networkingv1.NetworkPolicyPeer{ofAllNamespaces})
				check.Equal(t, in.name+": --hooks-endpoint", "https://"+service.Name+"."+service.Namespace+".svc", flag(deployment, "hooks-endpoint"))
			}
		}
	}
}

// checkEndpoint checks that one Service leads to the port of this name, where the agent listens, and that these peers alone
// reach it, or all clients if there are none.
func checkEndpoint(t *testing.T, in installed, agent *appsv1.Deployment, port string, from []networkingv1.NetworkPolicyPeer) *corev1.Service {
	t.Helper()
	services := slices.DeleteFunc(all[*corev1.Service](t, in), func(s *corev1.Service) bool {
		return s.Namespace != agent.Namespace || s.Spec.Ports[0].TargetPort.String() != port
	})
	if len(services) != 1 || len(services[0].Spec.Ports) != 1 {
		t.Fatalf("%s: Services of the port %s: %v", in.name, port, services)
	}
	check.Equal(t, in.name+": port of the Service", 443, services[0].Spec.Ports[0].Port)
	for key, value := range agent.Spec.Selector.MatchLabels {
		check.Equal(t, in.name+": the Service selects by "+key, value, services[0].Spec.Selector[key])
	}
	ports := agent.Spec.Template.Spec.Containers[0].Ports
	at := slices.IndexFunc(ports, func(p corev1.ContainerPort) bool { return p.Name == port })
	if at < 0 {
		t.Fatalf("%s: the agent has the ports %v", in.name, ports)
	}
	number := int(ports[at].ContainerPort)
	check.Equal(t, in.name+": where it listens", ":"+strconv.Itoa(number), flag(agent, port+"-bind-address"))
	check.Equal(t, in.name+": who reaches it", from, reachedFrom(in, agent, number), cmpopts.EquateEmpty())
	return services[0]
}

// reachedFrom returns the peers that may reach a port, according to the policies for these
// Pods alone.
func reachedFrom(in installed, deployment *appsv1.Deployment, port int) []networkingv1.NetworkPolicyPeer {
	var from []networkingv1.NetworkPolicyPeer
	for _, policy := range some[*networkingv1.NetworkPolicy](in) {
		if !reflect.DeepEqual(policy.Spec.PodSelector.MatchLabels, deployment.Spec.Selector.MatchLabels) {
			continue
		}
		for _, rule := range policy.Spec.Ingress {
			if slices.ContainsFunc(rule.Ports, func(p networkingv1.NetworkPolicyPort) bool { return p.Port.IntValue() == port }) {
				from = append(from, rule.From...)
			}
		}
	}
	return from
}

// The authority belongs to the target. It is shipped empty, and applying the manifests again
// does not remove it.
func TestTheAuthorityIsShippedEmpty(t *testing.T) {
	for _, in := range installations(t) {
		found := false
		for _, secret := range some[*corev1.Secret](in) {
			found = found || secret.Name == "krake-hooks-ca" && secret.Namespace == "krake-agents"
			if secret.Data != nil || secret.StringData != nil || secret.Immutable != nil {
				t.Errorf("%s: Secret %s is shipped with %d values", in.name, secret.Name, len(secret.Data)+len(secret.StringData))
			}
		}
		if found != slices.Contains(withHooks, in.name) {
			t.Errorf("%s: it has the authority of the hooks: %t", in.name, found)
		}
	}
}

// URLs are fetched only where that is requested: in strict mode, by the agent, from the named
// hosts.
func TestURLSources(t *testing.T) {
	for _, in := range installations(t) {
		want := in.name == "overlays/url-sources" || in.name == "made/strict-all"
		for _, agent := range deployments(in, "krake-agent") {
			hosts := flag(agent, "url-source-hosts")
			if (hosts != "") != want || (want && !isOn(agent, "require-service-account")) {
				t.Errorf("%s: the agent's arguments are %v", in.name, agent.Spec.Template.Spec.Containers[0].Args)
			}
			if want && !strings.HasSuffix(hosts, ".example.org") {
				t.Errorf("%s: %s is fetched from before anybody has said so", in.name, hosts)
			}
		}
		for _, webhook := range deployments(in, "krake-webhook") {
			if isOn(webhook, "url-sources") != want || (want && !isOn(webhook, "require-service-account")) {
				t.Errorf("%s: the webhook's arguments are %v", in.name, webhook.Spec.Template.Spec.Containers[0].Args)
			}
		}
	}
}

// The policy for URL sources allows only public addresses.
func TestURLSourcesArePublic(t *testing.T) {
	var policy *networkingv1.NetworkPolicy
	for _, p := range all[*networkingv1.NetworkPolicy](t, installation(t, "overlays/url-sources")) {
		if p.Name == "krake-url-sources" {
			policy = p
		}
	}
	if policy == nil {
		t.Fatal("there is no policy krake-url-sources")
	}
	for address, want := range map[string]bool{
		"93.184.215.14": true, "172.32.0.1": true, "2606:2800:21f:cb07::1": true,
		"10.96.0.1": false, "100.64.0.1": false, "127.0.0.1": false, "169.254.169.254": false, "172.16.0.1": false, "172.31.255.255": false,
		"192.168.1.1": false, "::1": false, "fd00::1": false, "fe80::1": false, "::ffff:10.0.0.1": false,
	} {
		if got := letsOut(policy, netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is reached: %t", address, got)
		}
	}
}

func letsOut(policy *networkingv1.NetworkPolicy, address netip.Addr) bool {
	for _, rule := range policy.Spec.Egress {
		for _, peer := range rule.To {
			within := func(cidr string) bool { return netip.MustParsePrefix(cidr).Contains(address) }
			if within(peer.IPBlock.CIDR) && !slices.ContainsFunc(peer.IPBlock.Except, within) {
				return true
			}
		}
	}
	return false
}
