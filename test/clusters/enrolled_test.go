package clusters

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	enrolment "github.com/krake-observer/krake-observer/internal/enrol"
	"github.com/krake-observer/krake-observer/manifests"
	"github.com/krake-observer/krake-observer/test/kit"
)

func apply(ctx context.Context, c *kit.Plane, folder string) error {
	return kubectl(ctx, c, "apply", "-k", folder)
}

// kubectl runs a command, which must neither fail nor warn.
func kubectl(ctx context.Context, c *kit.Plane, arguments ...string) error {
	text, err := kit.TryKubectl(ctx, c.Cluster, "", arguments...)
	if err != nil || strings.Contains(text, "Warning") {
		return fmt.Errorf("kubectl %s: %w\n%s", strings.Join(arguments, " "), err, text)
	}
	return nil
}

func configOfHub() (*rest.Config, error) {
	return clientcmd.BuildConfigFromFlags("", env.hub.Kubeconfig())
}

// optionsFor returns the options to enrol a cluster in a folder of the test.
func optionsFor(t *testing.T, name string) enrolment.Options {
	t.Helper()
	options := enrolment.Options{Hub: configOfHub}
	flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
	options.AddFlags(flags)
	out := filepath.Join(t.TempDir(), name)
	kit.Must(t, flags.Parse([]string{"--token-duration=1h", "--out", out}))
	options.Cluster = name
	return options
}

// mustEnrol enrols a cluster, and returns the output.
func mustEnrol(t *testing.T, options enrolment.Options) (said string) {
	t.Helper()
	var out strings.Builder
	kit.Must(t, options.Validate())
	if err := enrolment.Enrol(t.Context(), options, &out); err != nil {
		t.Fatalf("enrol %s: %v\n%s", options.Cluster, err, out.String())
	}
	return out.String()
}

var get = metav1.GetOptions{}

func agentOf(t *testing.T, options enrolment.Options) kubernetes.Interface {
	t.Helper()
	return clientOf(t, configOf(t, options))
}

// awaitRights waits until RBAC grants the rights in a namespace.
func awaitRights(t *testing.T, agent kubernetes.Interface, namespace string) {
	t.Helper()
	kit.EventuallyNil(t, func() error { return list(t, agent, namespace) })
}

// list tries to list the ConfigMaps of a namespace.
func list(t *testing.T, agent kubernetes.Interface, namespace string) error {
	t.Helper()
	return kit.ErrorOf(agent.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{}))
}

// shipped returns a folder with the shipped manifests.
func shipped(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "manifests")
	kit.Must(t, os.CopyFS(folder, manifests.Files))
	return folder
}

// request is a row of a matrix: a request, and whether the API server allows it.
type request struct {
	what    string
	try     func() error
	allowed bool
}

func checkRequests(t *testing.T, requests []request) {
	t.Helper()
	for _, a := range requests {
		err := a.try()
		t.Logf("%-70s %s", a.what, map[bool]string{true: "allowed", false: "refused"}[err == nil])
		if a.allowed && err != nil {
			t.Errorf("%s: %v", a.what, err)
		}
		if !a.allowed && !apierrors.IsForbidden(err) {
			t.Errorf("%s: it is not forbidden: %v", a.what, err)
		}
	}
}

const agents = "krake-agents"

// The folders of enrolments are applied to a target, one after the other. What the strict one changes for all agents, each later
// enrolment changes back.
func TestAgentsOnATarget(t *testing.T) {
	t.Run("beside the agent of a hub", aSpokeThatIsAHub)
	t.Run("with an endpoint for hooks", hooksOnASpoke)
	t.Run("a strict one", aStrictSpoke)
}

// A target that is also a hub has two agents. They share no objects, and one stays when
// the other is removed.
func aSpokeThatIsAHub(t *testing.T) {
	kit.Must(t, apply(t.Context(), env.east, filepath.Join(shipped(t), "base")))
	options := optionsFor(t, "spoke")
	mustEnrol(t, options)
	kit.Must(t, apply(t.Context(), env.east, options.Out))
	checkRightsOnTheSpoke(t)
	own, err := env.east.AppsV1().Deployments(agents).Get(t.Context(), "krake-agent", get)
	kit.Must(t, err)
	enrolled, err := env.east.AppsV1().Deployments(agents).Get(t.Context(), "krake-agent-spoke", get)
	kit.Must(t, err)
	for _, pair := range [][2]map[string]string{
		{own.Spec.Selector.MatchLabels, enrolled.Spec.Template.Labels},
		{enrolled.Spec.Selector.MatchLabels, own.Spec.Template.Labels},
	} {
		if labels.SelectorFromSet(pair[0]).Matches(labels.Set(pair[1])) {
			t.Errorf("the Pods %v are selected by %v", pair[1], pair[0])
		}
	}
	kit.EventuallyTrue(t, "the agent has no two Pods", func() bool { // with the admission of Pods
		pods, err := env.east.CoreV1().Pods(agents).List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=spoke"})
		return err == nil && len(pods.Items) == 2
	})

	expectGone(t, options)
	kit.Must(t, kit.ErrorOf(env.east.CoreV1().ServiceAccounts(agents).Get(t.Context(), "local", get)))
}

// expectGone deletes an agent from the target; shared objects stay.
func expectGone(t *testing.T, options enrolment.Options) {
	t.Helper()
	kit.Must(t, kubectl(t.Context(), env.east, "delete", "--wait=false", "-k", filepath.Join(options.Out, "agent")))
	for _, name := range []string{"krake-agents-leases", "krake-agents-namespaces", "krake-configmaps", "krake-configmaps-deletion"} {
		if err := kit.ErrorOf(env.east.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Get(t.Context(), name, get)); err != nil {
			t.Error(err)
		}
	}
	expectNone(t, "the agent", map[string]error{
		"ServiceAccount": kit.ErrorOf(env.east.CoreV1().ServiceAccounts(agents).Get(t.Context(), "spoke", get)),
		"Secret":         kit.ErrorOf(env.east.CoreV1().Secrets(agents).Get(t.Context(), "krake-hub-spoke", get)),
		"binding":        kit.ErrorOf(env.east.RbacV1().ClusterRoleBindings().Get(t.Context(), "krake-agent-target-spoke", get)),
	})
}

// expectNone fails unless each of these reads has found nothing.
func expectNone(t *testing.T, of string, reads map[string]error) {
	t.Helper()
	for what, err := range reads {
		if !apierrors.IsNotFound(err) {
			t.Errorf("the %s of %s is left: %v", what, of, err)
		}
	}
}

type attributes = authorizationv1.ResourceAttributes

var patchDeployments = attributes{Verb: "patch", Group: "apps", Resource: "deployments", Namespace: "default"}

// checkRightsOnTheSpoke checks that on the target, the agent may write workloads, identify its cluster, and renew its own Lease.
func checkRightsOnTheSpoke(t *testing.T) {
	t.Helper()
	deployment, err := env.east.AppsV1().Deployments(agents).Get(t.Context(), "krake-agent-spoke", get)
	kit.Must(t, err)
	want := []string{"--cluster=spoke", "--namespace=krake-agents", "--hub-kubeconfig=/hub/kubeconfig", "--hub-namespaces=spoke"}
	if diff := cmp.Diff(want, deployment.Spec.Template.Spec.Containers[0].Args); diff != "" {
		t.Errorf("the agent's arguments (-want +got):\n%s", diff)
	}
	kit.EventuallyTrue(t, "the agent may not write workloads", func() bool { // a controller aggregates the role
		return may(t, env.east, "spoke", patchDeployments)
	})
	for _, c := range []struct {
		attributes
		want bool
	}{
		{attributes{Verb: "get", Resource: "namespaces", Name: "kube-system"}, true},
		{attributes{Verb: "create", Group: "events.k8s.io", Resource: "events", Namespace: "default"}, true},
		{attributes{Verb: "create", Group: "coordination.k8s.io", Resource: "leases", Namespace: agents}, true},
		{attributes{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: agents, Name: "krake-agent-spoke"}, true},
		{attributes{Verb: "create", Group: "authentication.k8s.io", Resource: "tokenreviews"}, true},
		{attributes{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: agents, Name: "krake-agent-local"}, false},
		{attributes{Verb: "get", Resource: "namespaces", Name: "default"}, false},
		{attributes{Verb: "get", Resource: "secrets", Namespace: agents, Name: "krake-hub-spoke"}, false},
		{attributes{Verb: "create", Resource: "secrets", Namespace: "default"}, false},
		{attributes{Verb: "create", Group: "rbac.authorization.k8s.io", Resource: "roles", Namespace: "default"}, false},
	} {
		if got := may(t, env.east, "spoke", c.attributes); got != c.want {
			t.Errorf("%+v: allowed: %t, want %t", c.attributes, got, c.want)
		}
	}
}

// may reports what an agent may do in a cluster.
func may(t *testing.T, in *kit.Plane, name string, what attributes) bool {
	t.Helper()
	return allows(t, in, authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:" + agents + ":" + name,
		Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + agents, "system:authenticated"},
		ResourceAttributes: &what,
	})
}

func allows(t *testing.T, in *kit.Plane, who authorizationv1.SubjectAccessReviewSpec) bool {
	t.Helper()
	answer, err := in.AuthorizationV1().SubjectAccessReviews().Create(t.Context(),
		&authorizationv1.SubjectAccessReview{Spec: who}, metav1.CreateOptions{})
	kit.Must(t, err)
	return answer.Status.Allowed
}

// The folder of a strict agent can also be applied, and lets it write workloads only as
// the accounts of that name.
func aStrictSpoke(t *testing.T) {
	options := optionsFor(t, "strict")
	options.RequireServiceAccount, options.Reach.Scope = true, "cluster"
	options.HubServer = "https://env.hub.example.org:16443"
	mustEnrol(t, options)
	kit.Must(t, apply(t.Context(), env.east, options.Out))
	accounts := attributes{Verb: "impersonate:serviceaccount", Group: "authentication.k8s.io", Resource: "serviceaccounts", Namespace: "default"}
	deployer, admin := accounts, accounts
	deployer.Name, admin.Name = "krake-deployer", "admin"
	asOne := patchDeployments
	asOne.Verb = "impersonate-on:serviceaccount:patch"
	kit.Eventually(t, func() string { // a controller aggregates the role
		act, write, itself := may(t, env.east, "strict", deployer), may(t, env.east, "strict", asOne), may(t, env.east, "strict", patchDeployments)
		if act && write && !itself {
			return ""
		}
		return fmt.Sprintf("the agent may be the account: %t; write as it: %t; write as itself: %t", act, write, itself)
	})
	if may(t, env.east, "strict", admin) {
		t.Error("the agent may act as an account of any name")
	}
	policy, err := env.east.NetworkingV1().NetworkPolicies(agents).Get(t.Context(), "krake-agent-strict", get)
	kit.Must(t, err)
	ports := policy.Spec.Egress[0].Ports
	if last := ports[len(ports)-1].Port.IntValue(); last != 16443 {
		t.Errorf("the last port that the agent reaches is %d, want that of the hub", last)
	}
	kit.Must(t, kit.ErrorOf(os.Stat(filepath.Join(options.Out, "manifests", "components", "strict", "target", "deployers.yaml"))))
}
