package enrol

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/internal/enrol"
	"github.com/krake-observer/krake-observer/test/kit"
)

// With hooks, an agent deletes on the hub the Applications of its cluster that are
// complete, and nothing else, in its namespaces and in no other; enrolled without
// hooks, nothing any more.
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
		annotateComplete(t, app[0], app[1])
	}
	agent := agentOf(t, options)
	awaitRights(t, agent, "hooked")
	deletion := authorizationv1.ResourceAttributes{Verb: "delete", Resource: "configmaps", Namespace: "hooked"}
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
		{"read a Secret", func() error {
			_, err := agent.CoreV1().Secrets("hooked").Get(t.Context(), "x", metav1.GetOptions{})
			return err
		}, false},
	})

	options.Hooks = false
	enrolled(t, options)
	kit.Eventually(t, func() string { return notYet(!may(t, hub, "hooked", deletion), "the agent may still delete") })
	if !may(t, hub, "hooked", authorizationv1.ResourceAttributes{Verb: "patch", Resource: "configmaps", Namespace: "hooked"}) {
		t.Error("without hooks, the agent has no rights at all")
	}
}

func notYet(done bool, problem string) string {
	if done {
		return ""
	}
	return problem
}

func annotateComplete(t *testing.T, namespace, name string) {
	t.Helper()
	patch := []byte(`{"metadata":{"annotations":{"krake.dev/hooks":"complete"}}}`)
	if _, err := hub.CoreV1().ConfigMaps(namespace).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// On a target two agents with hooks have an endpoint each, and share the authority,
// which stays when one of them goes.
func TestHooksOnASpoke(t *testing.T) {
	options := optionsFor(t, "endpoint")
	options.Hooks = true
	enrolled(t, options)
	for _, folder := range []string{filepath.Join(spoke.Dir(), "manifests", "overlays", "hooks"), options.Out} {
		if err := apply(t.Context(), spoke, folder); err != nil {
			t.Fatal(err)
		}
	}
	admin := spoke
	for service, agent := range map[string]string{"krake-hooks": "krake-agent", "krake-hooks-endpoint": "krake-agent-endpoint"} {
		found, err := admin.CoreV1().Services(agents).Get(t.Context(), service, get)
		if err != nil {
			t.Fatal(err)
		}
		deployment, err := admin.AppsV1().Deployments(agents).Get(t.Context(), agent, get)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(deployment.Spec.Selector.MatchLabels, found.Spec.Selector); diff != "" {
			t.Errorf("Pods of %s and of the Service (-want +got):\n%s", agent, diff)
		}
	}
	own := authorizationv1.ResourceAttributes{Verb: "update", Resource: "secrets", Namespace: agents, Name: "krake-hooks-ca"}
	elsewhere := authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets", Namespace: "default", Name: "x"}
	for _, name := range []string{"local", "endpoint"} {
		kit.Eventually(t, func() string { return notYet(may(t, spoke, name, own), name+" may not change the authority") })
		if may(t, spoke, name, elsewhere) {
			t.Errorf("%s may read Secrets where nobody has said so", name)
		}
	}
	const binding = "krake-hooks-endpoint" // as enrol says
	if err := kubectl(t.Context(), spoke, "create", "rolebinding", binding, "--clusterrole=krake-hooks",
		"--serviceaccount=krake-agents:endpoint", "--namespace", "default"); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, func() string { return notYet(may(t, spoke, "endpoint", elsewhere), "the agent may not read Secrets") })
	if may(t, spoke, "local", elsewhere) {
		t.Error("the other agent may read Secrets, too")
	}
	expectHooksGone(t, options, binding)
}

// expectHooksGone deletes an agent from the target, with its endpoint.
func expectHooksGone(t *testing.T, options enrol.Options, binding string) {
	t.Helper()
	if err := kubectl(t.Context(), spoke, "delete", "rolebinding", binding, "--namespace", "default"); err != nil {
		t.Fatal(err)
	}
	if err := kubectl(t.Context(), spoke, "delete", "--wait=false", "-k", filepath.Join(options.Out, "agent")); err != nil {
		t.Fatal(err)
	}
	admin := spoke
	for what, err := range map[string]error{
		"Service":       second(admin.CoreV1().Services(agents).Get(t.Context(), "krake-hooks-endpoint", get)),
		"NetworkPolicy": second(admin.NetworkingV1().NetworkPolicies(agents).Get(t.Context(), "krake-hooks-endpoint", get)),
		"binding":       second(admin.RbacV1().RoleBindings(agents).Get(t.Context(), "krake-hooks-ca-endpoint", get)),
	} {
		if !apierrors.IsNotFound(err) {
			t.Errorf("the %s of the endpoint is left: %v", what, err)
		}
	}
	if _, err := admin.CoreV1().Secrets(agents).Get(t.Context(), "krake-hooks-ca", get); err != nil {
		t.Error(err)
	}
}
