package clusters

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	enrolment "github.com/krake-observer/krake-observer/internal/enrol"
	"github.com/krake-observer/krake-observer/test/kit"
)

func tokenOf(t *testing.T, options enrolment.Options) string {
	t.Helper()
	token, err := os.ReadFile(filepath.Join(options.Out, "agent", "token"))
	kit.Must(t, err)
	return string(token)
}

// A second enrolment of a cluster renews the token without an outage, and updates
// rights and files to the current options.
func TestEnrolAgain(t *testing.T) {
	env.hub.CreateNamespace(t, "first")
	env.hub.CreateNamespace(t, "second")
	options := optionsFor(t, "again")
	options.HubNamespaces = []string{"first"}
	said := mustEnrol(t, options)
	token, before := tokenOf(t, options), agentOf(t, enrolment.Options{Out: kept(t, options)})
	awaitRights(t, before, "first")

	options.HubNamespaces = []string{"second"}
	saidAgain := mustEnrol(t, options)
	awaitRights(t, agentOf(t, options), "second")
	if tokenOf(t, options) == token {
		t.Error("the token is the same")
	}
	if err := list(t, before, "second"); err != nil {
		t.Errorf("with the token of before: %v", err)
	}
	kit.EventuallyTrue(t, "the rights in the first namespace are left", func() bool {
		return list(t, before, "first") != nil
	})
	for _, text := range []string{said, saidAgain} {
		if strings.Contains(text, token) || strings.Contains(text, tokenOf(t, options)) {
			t.Error("a token is shown")
		}
	}
	for _, line := range []string{
		"serviceaccount/again in namespace krake-agents serverside-applied\n",
		"role.rbac.authorization.k8s.io/krake-cluster-again in namespace first deleted\n",
		"\n    kubectl apply -k " + options.Out + "\n",
		"\n    kubectl create clusterrolebinding krake-deploy-to-again-USER --clusterrole=krake-deploy-to-again --user=USER\n",
		"is this machine",
	} {
		if !strings.Contains(saidAgain, line) {
			t.Errorf("%q is not in\n%s", line, saidAgain)
		}
	}
}

// An enrolment that would take over foreign objects is refused, before anything is
// created.
func TestEnrolRefuses(t *testing.T) {
	env.hub.CreateNamespace(t, "production")
	occupied := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "occupied"}}
	kit.Must(t, kit.ErrorOf(env.hub.CoreV1().ServiceAccounts(agents).Create(t.Context(), occupied, metav1.CreateOptions{})))
	full := t.TempDir()
	kit.Must(t, os.WriteFile(filepath.Join(full, "mine"), nil, 0o600))
	for _, c := range []struct {
		why, cluster string
		change       func(*enrolment.Options)
		want         string
	}{
		{"an agent of the hub has the name", "occupied", func(*enrolment.Options) {}, "is not of an enrolment"},
		{"the namespace has other things in it", "production", func(*enrolment.Options) {}, "name it by --hub-namespaces"},
		{"the folder has other things in it", "refused", func(o *enrolment.Options) { o.Out = full }, "name an empty folder"},
	} {
		t.Run(c.why, func(t *testing.T) {
			options := optionsFor(t, c.cluster)
			c.change(&options)
			err := enrolment.Enrol(t.Context(), options, &strings.Builder{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			secrets, err := env.hub.CoreV1().Secrets("krake-agents").List(t.Context(), metav1.ListOptions{LabelSelector: "krake.dev/enrolment=" + c.cluster})
			if err != nil || len(secrets.Items) > 0 {
				t.Errorf("something was made: %v", err)
			}
		})
	}
	options := optionsFor(t, "production")
	options.HubNamespaces = []string{"production"}
	mustEnrol(t, options)
	namespace, err := env.hub.CoreV1().Namespaces().Get(t.Context(), "production", get)
	if err != nil || namespace.Labels["krake.dev/enrolment"] != "" || namespace.Labels["pod-security.kubernetes.io/enforce"] != "" {
		t.Errorf("the namespace, which is somebody's, was changed: %v %v", namespace, err)
	}
}

// A hub without one of the policies would not isolate its agents.
func TestEnrolWantsThePolicies(t *testing.T) {
	bindings := env.hub.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	binding, err := bindings.Get(t.Context(), "krake-agents-leases", get)
	kit.Must(t, err)
	kit.Must(t, bindings.Delete(t.Context(), binding.Name, metav1.DeleteOptions{}))
	err = enrolment.Enrol(t.Context(), optionsFor(t, "early"), &strings.Builder{})
	if err == nil || !strings.Contains(err.Error(), "apply manifests/overlays/hub") {
		t.Errorf("it is not refused: %v", err)
	}
	binding.ResourceVersion = ""
	kit.Must(t, kit.ErrorOf(bindings.Create(t.Context(), binding, metav1.CreateOptions{})))
}

// A target has one name: with two names, its agents would take each other's objects for
// those of a former cluster.
func TestOneNameForATarget(t *testing.T) {
	options := optionsFor(t, "twin")
	mustEnrol(t, options)
	for name, target := range map[string]string{"krake-cluster-else": "b", "krake-cluster-new": "", "krake-cluster-twin": "a", "krake-agent-else": "a"} {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"krake.dev/target": target}}}
		kit.Must(t, kit.ErrorOf(env.hub.CoordinationV1().Leases(agents).Create(t.Context(), lease, metav1.CreateOptions{})))
	}
	mustEnrol(t, options)
	_, err := env.hub.CoordinationV1().Leases(agents).Patch(t.Context(), "krake-cluster-else", types.MergePatchType,
		[]byte(`{"metadata": {"annotations": {"krake.dev/target": "a"}}}`), metav1.PatchOptions{})
	kit.Must(t, err)
	err = enrolment.Enrol(t.Context(), options, &strings.Builder{})
	if err == nil || !strings.Contains(err.Error(), "cluster twin is the same target as cluster else") {
		t.Errorf("it is not refused: %v", err)
	}
}

// The ClusterRole of the enrolment has the rights to run Applications on the cluster;
// no user gets it automatically.
func TestDeployTo(t *testing.T) {
	mustEnrol(t, optionsFor(t, "deploy"))
	const role = "krake-deploy-to-deploy"
	kit.Must(t, kubectl(t.Context(), env.hub, "create", "clusterrolebinding", role+"-USER", "--clusterrole="+role, "--user=USER"))
	may := func(user, cluster string) bool { // as the webhook asks
		return allows(t, env.hub, authorizationv1.SubjectAccessReviewSpec{
			User: user, Groups: []string{"system:authenticated"},
			ResourceAttributes: &attributes{Verb: "deploy-to", Group: "krake.dev", Resource: "clusters", Name: cluster},
		})
	}
	kit.EventuallyTrue(t, "the user may not deploy to the cluster", func() bool { return may("USER", "deploy") })
	if may("USER", "again") || may("somebody", "deploy") {
		t.Error("more may deploy than was said, or to more clusters")
	}
}

// With hooks, an agent may delete complete Applications of its cluster on the hub, in
// its namespaces, and nothing else. After an enrolment without hooks, it may delete
// nothing.
func TestHooksOnTheHub(t *testing.T) {
	options := optionsFor(t, "hooked")
	options.Hooks = true
	mustEnrol(t, options)
	env.hub.CreateNamespace(t, "unhooked")
	newSettings(t, "hooked", "hooked", "complete")
	newSettings(t, "hooked", "hooked", "working")
	newSettings(t, "local", "hooked", "theirs")
	newSettings(t, "hooked", "unhooked", "complete")
	for _, app := range [][2]string{{"hooked", "complete"}, {"hooked", "theirs"}, {"unhooked", "complete"}} {
		env.hub.Change(t, kit.ConfigMaps, app[0], app[1], `{"metadata": {"annotations": {"krake.dev/hooks": "complete"}}}`)
	}
	agent := agentOf(t, options)
	awaitRights(t, agent, "hooked")
	deletion := attributes{Verb: "delete", Resource: "configmaps", Namespace: "hooked"}
	kit.EventuallyTrue(t, "the agent may not delete", func() bool { return may(t, env.hub, "hooked", deletion) })

	try := func(namespace, name string) func() error {
		return func() error {
			return agent.CoreV1().ConfigMaps(namespace).Delete(t.Context(), name, metav1.DeleteOptions{})
		}
	}
	checkRequests(t, []request{
		{"delete its Application that is complete", try("hooked", "complete"), true},
		{"delete its Application that is not", try("hooked", "working"), false},
		{"delete another's Application that is complete", try("hooked", "theirs"), false},
		{"delete one in another namespace", try("unhooked", "complete"), false},
		{"delete what is no Application", try("hooked", "kube-root-ca.crt"), false},
		{"delete all", func() error {
			return agent.CoreV1().ConfigMaps("hooked").DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{})
		}, false},
		{"read a Secret", func() error { return kit.ErrorOf(agent.CoreV1().Secrets("hooked").Get(t.Context(), "x", get)) }, false},
	})

	options.Hooks = false
	mustEnrol(t, options)
	kit.EventuallyTrue(t, "the agent may still delete", func() bool { return !may(t, env.hub, "hooked", deletion) })
	if !may(t, env.hub, "hooked", attributes{Verb: "patch", Resource: "configmaps", Namespace: "hooked"}) {
		t.Error("without hooks, the agent has no rights at all")
	}
}

// On a target, two agents with hooks have an endpoint each, and share the authority,
// which stays when one of them is removed.
func hooksOnASpoke(t *testing.T) {
	options := optionsFor(t, "endpoint")
	options.Hooks = true
	mustEnrol(t, options)
	for _, folder := range []string{filepath.Join(shipped(t), "overlays", "hooks"), options.Out} {
		kit.Must(t, apply(t.Context(), env.east, folder))
	}
	for service, agent := range map[string]string{"krake-hooks": "krake-agent", "krake-hooks-endpoint": "krake-agent-endpoint"} {
		found, err := env.east.CoreV1().Services(agents).Get(t.Context(), service, get)
		kit.Must(t, err)
		deployment, err := env.east.AppsV1().Deployments(agents).Get(t.Context(), agent, get)
		kit.Must(t, err)
		if diff := cmp.Diff(deployment.Spec.Selector.MatchLabels, found.Spec.Selector); diff != "" {
			t.Errorf("Pods of %s and of the Service (-want +got):\n%s", agent, diff)
		}
	}
	own := attributes{Verb: "update", Resource: "secrets", Namespace: agents, Name: "krake-hooks-ca"}
	elsewhere := attributes{Verb: "get", Resource: "secrets", Namespace: "default", Name: "x"}
	for _, name := range []string{"local", "endpoint"} {
		kit.EventuallyTrue(t, name+" may not change the authority", func() bool { return may(t, env.east, name, own) })
		if may(t, env.east, name, elsewhere) {
			t.Errorf("%s may read Secrets where nobody has said so", name)
		}
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "krake-hooks-endpoint"}, // as enrol names it
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "krake-hooks"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: agents, Name: "endpoint"}},
	}
	kit.Must(t, kit.ErrorOf(env.east.RbacV1().RoleBindings("default").Create(t.Context(), binding, metav1.CreateOptions{})))
	kit.EventuallyTrue(t, "the agent may not read Secrets", func() bool {
		return may(t, env.east, "endpoint", elsewhere)
	})
	if may(t, env.east, "local", elsewhere) {
		t.Error("the other agent may read Secrets, too")
	}
	kit.Must(t, env.east.RbacV1().RoleBindings("default").Delete(t.Context(), binding.Name, metav1.DeleteOptions{}))
	expectHooksGone(t, options)
}

// expectHooksGone deletes an agent from the target, with its endpoint.
func expectHooksGone(t *testing.T, options enrolment.Options) {
	t.Helper()
	kit.Must(t, kubectl(t.Context(), env.east, "delete", "--wait=false", "-k", filepath.Join(options.Out, "agent")))
	expectNone(t, "the endpoint", map[string]error{
		"Service":       kit.ErrorOf(env.east.CoreV1().Services(agents).Get(t.Context(), "krake-hooks-endpoint", get)),
		"NetworkPolicy": kit.ErrorOf(env.east.NetworkingV1().NetworkPolicies(agents).Get(t.Context(), "krake-hooks-endpoint", get)),
		"binding":       kit.ErrorOf(env.east.RbacV1().RoleBindings(agents).Get(t.Context(), "krake-hooks-ca-endpoint", get)),
	})
	kit.Must(t, kit.ErrorOf(env.east.CoreV1().Secrets(agents).Get(t.Context(), "krake-hooks-ca", get)))
}
