package clusters

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	kit.Eventually(t, func() string {
		return notYet(list(t, before, "first") != nil, "the rights in the first namespace are left")
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
	kit.Must(t, kubectl(t.Context(), env.hub, "create", "serviceaccount", "--namespace", "krake-agents", "occupied"))
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
	kit.Must(t, kubectl(t.Context(), env.hub, "delete", "validatingadmissionpolicybinding", "krake-agents-leases"))
	err := enrolment.Enrol(t.Context(), optionsFor(t, "early"), &strings.Builder{})
	if err == nil || !strings.Contains(err.Error(), "apply manifests/overlays/hub") {
		t.Errorf("it is not refused: %v", err)
	}
	kit.Must(t, env.installation.Apply(t.Context()))
}

// A target has one name: with two names, its agents would take each other's objects for
// those of a former cluster.
func TestOneNameForATarget(t *testing.T) {
	options := optionsFor(t, "twin")
	mustEnrol(t, options)
	for name, target := range map[string]string{"krake-cluster-else": "b", "krake-cluster-new": "", "krake-cluster-twin": "a", "krake-agent-else": "a"} {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"krake.dev/target": target}}}
		kit.Must(t, second(env.hub.CoordinationV1().Leases(agents).Create(t.Context(), lease, metav1.CreateOptions{})))
	}
	mustEnrol(t, options)
	kit.Must(t, kubectl(t.Context(), env.hub, "annotate", "--overwrite", "--namespace", agents, "lease", "krake-cluster-else",
		"krake.dev/target=a"))
	err := enrolment.Enrol(t.Context(), options, &strings.Builder{})
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
	kit.Eventually(t, func() string { return notYet(may("USER", "deploy"), "the user may not deploy to the cluster") })
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
	createApp(t, "hooked", "complete", "hooked")
	createApp(t, "hooked", "working", "hooked")
	createApp(t, "hooked", "theirs", "local")
	createApp(t, "unhooked", "complete", "hooked")
	for _, app := range [][2]string{{"hooked", "complete"}, {"hooked", "theirs"}, {"unhooked", "complete"}} {
		env.hub.Change(t, kit.ConfigMaps, app[0], app[1], `{"metadata": {"annotations": {"krake.dev/hooks": "complete"}}}`)
	}
	agent := agentOf(t, options)
	awaitRights(t, agent, "hooked")
	deletion := attributes{Verb: "delete", Resource: "configmaps", Namespace: "hooked"}
	kit.Eventually(t, func() string { return notYet(may(t, env.hub, "hooked", deletion), "the agent may not delete") })

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
		{"read a Secret", func() error { return second(agent.CoreV1().Secrets("hooked").Get(t.Context(), "x", get)) }, false},
	})

	options.Hooks = false
	mustEnrol(t, options)
	kit.Eventually(t, func() string { return notYet(!may(t, env.hub, "hooked", deletion), "the agent may still delete") })
	if !may(t, env.hub, "hooked", attributes{Verb: "patch", Resource: "configmaps", Namespace: "hooked"}) {
		t.Error("without hooks, the agent has no rights at all")
	}
}

func notYet(done bool, problem string) string {
	if done {
		return ""
	}
	return problem
}

// On a target, two agents with hooks have an endpoint each, and share the authority,
// which stays when one of them is removed.
func TestHooksOnASpoke(t *testing.T) {
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
		kit.Eventually(t, func() string { return notYet(may(t, env.east, name, own), name+" may not change the authority") })
		if may(t, env.east, name, elsewhere) {
			t.Errorf("%s may read Secrets where nobody has said so", name)
		}
	}
	const binding = "krake-hooks-endpoint" // as enrol names it
	kit.Must(t, kubectl(t.Context(), env.east, "create", "rolebinding", binding, "--clusterrole=krake-hooks",
		"--serviceaccount=krake-agents:endpoint", "--namespace", "default"))
	kit.Eventually(t, func() string {
		return notYet(may(t, env.east, "endpoint", elsewhere), "the agent may not read Secrets")
	})
	if may(t, env.east, "local", elsewhere) {
		t.Error("the other agent may read Secrets, too")
	}
	expectHooksGone(t, options, binding)
}

// expectHooksGone deletes an agent from the target, with its endpoint.
func expectHooksGone(t *testing.T, options enrolment.Options, binding string) {
	t.Helper()
	kit.Must(t, kubectl(t.Context(), env.east, "delete", "rolebinding", binding, "--namespace", "default"))
	kit.Must(t, kubectl(t.Context(), env.east, "delete", "--wait=false", "-k", filepath.Join(options.Out, "agent")))
	expectNone(t, "the endpoint", map[string]error{
		"Service":       second(env.east.CoreV1().Services(agents).Get(t.Context(), "krake-hooks-endpoint", get)),
		"NetworkPolicy": second(env.east.NetworkingV1().NetworkPolicies(agents).Get(t.Context(), "krake-hooks-endpoint", get)),
		"binding":       second(env.east.RbacV1().RoleBindings(agents).Get(t.Context(), "krake-hooks-ca-endpoint", get)),
	})
	kit.Must(t, second(env.east.CoreV1().Secrets(agents).Get(t.Context(), "krake-hooks-ca", get)))
}
