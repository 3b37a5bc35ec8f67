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

// agentOf returns the client that the agent makes from the files of its cluster.
func agentOf(t *testing.T, options enrolment.Options) kubernetes.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(options.Out, "agent", "kubeconfig"))
	kit.Must(t, err)
	config.QPS = -1
	agent, err := kubernetes.NewForConfig(config)
	kit.Must(t, err)
	return agent
}

// awaitRights waits until RBAC grants the rights in a namespace.
func awaitRights(t *testing.T, agent kubernetes.Interface, namespace string) {
	t.Helper()
	kit.EventuallyNil(t, func() error { return list(t, agent, namespace) })
}

// list tries to list the ConfigMaps of a namespace.
func list(t *testing.T, agent kubernetes.Interface, namespace string) error {
	t.Helper()
	return second(agent.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{}))
}

// createApp creates an Application of a ConfigMap.
func createApp(t *testing.T, namespace, name, cluster string) {
	t.Helper()
	newApp(t, cluster, namespace, name, settingsManifest("right"), "")
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

// On the target, the agent may write workloads, identify its cluster, and renew its own
// Lease.
func TestRightsOnTheSpoke(t *testing.T) {
	options := optionsFor(t, "rights")
	mustEnrol(t, options)
	kit.Must(t, apply(t.Context(), env.east, options.Out))
	deployment, err := env.east.AppsV1().Deployments(agents).Get(t.Context(), "krake-agent-rights", get)
	kit.Must(t, err)
	want := []string{"--cluster=rights", "--namespace=krake-agents", "--hub-kubeconfig=/hub/kubeconfig", "--hub-namespaces=rights"}
	if diff := cmp.Diff(want, deployment.Spec.Template.Spec.Containers[0].Args); diff != "" {
		t.Errorf("the agent's arguments (-want +got):\n%s", diff)
	}
	kit.Eventually(t, func() string { // a controller aggregates the role
		return notYet(may(t, env.east, "rights", patchDeployments), "the agent may not write workloads")
	})
	for _, c := range []struct {
		attributes
		want bool
	}{
		{attributes{Verb: "get", Resource: "namespaces", Name: "kube-system"}, true},
		{attributes{Verb: "create", Group: "events.k8s.io", Resource: "events", Namespace: "default"}, true},
		{attributes{Verb: "create", Group: "coordination.k8s.io", Resource: "leases", Namespace: agents}, true},
		{attributes{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: agents, Name: "krake-agent-rights"}, true},
		{attributes{Verb: "create", Group: "authentication.k8s.io", Resource: "tokenreviews"}, true},
		{attributes{Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: agents, Name: "krake-agent-local"}, false},
		{attributes{Verb: "get", Resource: "namespaces", Name: "default"}, false},
		{attributes{Verb: "get", Resource: "secrets", Namespace: agents, Name: "krake-hub-rights"}, false},
		{attributes{Verb: "create", Resource: "secrets", Namespace: "default"}, false},
		{attributes{Verb: "create", Group: "rbac.authorization.k8s.io", Resource: "roles", Namespace: "default"}, false},
	} {
		if got := may(t, env.east, "rights", c.attributes); got != c.want {
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
func TestAStrictSpoke(t *testing.T) {
	options := optionsFor(t, "strict")
	options.RequireServiceAccount, options.Reach.Scope = true, "cluster"
	options.HubServer = "https://env.hub.example.org:16443"
	mustEnrol(t, options)
	kit.Must(t, apply(t.Context(), env.east, options.Out))
	// The other tests are about agents that are not strict.
	defer func() { kit.Must(t, apply(t.Context(), env.east, filepath.Join(shipped(t), "base"))) }()
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
	kit.Must(t, second(os.Stat(filepath.Join(options.Out, "manifests", "components", "strict", "target", "deployers.yaml"))))
}
