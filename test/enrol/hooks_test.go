package enrol

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/internal/enrol"
	"github.com/krake-observer/krake-observer/test/kit"
)

// With hooks, an agent may delete complete Applications of its cluster on the hub, in
// its namespaces, and nothing else. After an enrolment without hooks, it may delete
// nothing.
func TestHooksOnTheHub(t *testing.T) {
	options := optionsFor(t, "hooked")
	options.Hooks = true
	enrolled(t, options)
	hub.CreateNamespace(t, "unhooked")
	application(t, "hooked", "complete", "hooked")
	application(t, "hooked", "working", "hooked")
	application(t, "hooked", "theirs", "local")
	application(t, "unhooked", "complete", "hooked")
	for _, app := range [][2]string{{"hooked", "complete"}, {"hooked", "theirs"}, {"unhooked", "complete"}} {
		hub.Change(t, kit.ConfigMaps, app[0], app[1], `{"metadata": {"annotations": {"krake.dev/hooks": "complete"}}}`)
	}
	agent := agentOf(t, options)
	awaitRights(t, agent, "hooked")
	deletion := attributes{Verb: "delete", Resource: "configmaps", Namespace: "hooked"}
	kit.Eventually(t, func() string { return notYet(may(t, hub, "hooked", deletion), "the agent may not delete") })

	try := func(namespace, name string) func() error {
		return func() error {
			return agent.CoreV1().ConfigMaps(namespace).Delete(t.Context(), name, metav1.DeleteOptions{})
		}
	}
	check(t, []attempt{
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
	enrolled(t, options)
	kit.Eventually(t, func() string { return notYet(!may(t, hub, "hooked", deletion), "the agent may still delete") })
	if !may(t, hub, "hooked", attributes{Verb: "patch", Resource: "configmaps", Namespace: "hooked"}) {
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
	enrolled(t, options)
	for _, folder := range []string{filepath.Join(spoke.Dir(), "manifests", "overlays", "hooks"), options.Out} {
		kit.Must(t, apply(t.Context(), spoke, folder))
	}
	for service, agent := range map[string]string{"krake-hooks": "krake-agent", "krake-hooks-endpoint": "krake-agent-endpoint"} {
		found, err := spoke.CoreV1().Services(agents).Get(t.Context(), service, get)
		kit.Must(t, err)
		deployment, err := spoke.AppsV1().Deployments(agents).Get(t.Context(), agent, get)
		kit.Must(t, err)
		if diff := cmp.Diff(deployment.Spec.Selector.MatchLabels, found.Spec.Selector); diff != "" {
			t.Errorf("Pods of %s and of the Service (-want +got):\n%s", agent, diff)
		}
	}
	own := attributes{Verb: "update", Resource: "secrets", Namespace: agents, Name: "krake-hooks-ca"}
	elsewhere := attributes{Verb: "get", Resource: "secrets", Namespace: "default", Name: "x"}
	for _, name := range []string{"local", "endpoint"} {
		kit.Eventually(t, func() string { return notYet(may(t, spoke, name, own), name+" may not change the authority") })
		if may(t, spoke, name, elsewhere) {
			t.Errorf("%s may read Secrets where nobody has said so", name)
		}
	}
	const binding = "krake-hooks-endpoint" // as enrol names it
	kit.Must(t, kubectl(t.Context(), spoke, "create", "rolebinding", binding, "--clusterrole=krake-hooks",
		"--serviceaccount=krake-agents:endpoint", "--namespace", "default"))
	kit.Eventually(t, func() string { return notYet(may(t, spoke, "endpoint", elsewhere), "the agent may not read Secrets") })
	if may(t, spoke, "local", elsewhere) {
		t.Error("the other agent may read Secrets, too")
	}
	expectHooksGone(t, options, binding)
}

// expectHooksGone deletes an agent from the target, with its endpoint.
func expectHooksGone(t *testing.T, options enrol.Options, binding string) {
	t.Helper()
	kit.Must(t, kubectl(t.Context(), spoke, "delete", "rolebinding", binding, "--namespace", "default"))
	kit.Must(t, kubectl(t.Context(), spoke, "delete", "--wait=false", "-k", filepath.Join(options.Out, "agent")))
	expectNone(t, "the endpoint", map[string]error{
		"Service":       second(spoke.CoreV1().Services(agents).Get(t.Context(), "krake-hooks-endpoint", get)),
		"NetworkPolicy": second(spoke.NetworkingV1().NetworkPolicies(agents).Get(t.Context(), "krake-hooks-endpoint", get)),
		"binding":       second(spoke.RbacV1().RoleBindings(agents).Get(t.Context(), "krake-hooks-ca-endpoint", get)),
	})
	kit.Must(t, second(spoke.CoreV1().Secrets(agents).Get(t.Context(), "krake-hooks-ca", get)))
}
