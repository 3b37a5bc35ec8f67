package enrol

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/internal/enrol"
	"github.com/krake-observer/krake-observer/test/kit"
)

func tokenOf(t *testing.T, options enrol.Options) string {
	t.Helper()
	token, err := os.ReadFile(filepath.Join(options.Out, "agent", "token"))
	kit.Must(t, err)
	return string(token)
}

// A second enrolment of a cluster renews the token without an outage, and updates
// rights and files to the current options.
func TestEnrolAgain(t *testing.T) {
	hub.CreateNamespace(t, "first")
	hub.CreateNamespace(t, "second")
	options := optionsFor(t, "again")
	options.HubNamespaces = []string{"first"}
	said := enrolled(t, options)
	token, before := tokenOf(t, options), agentOf(t, enrol.Options{Out: kept(t, options)})
	awaitRights(t, before, "first")

	options.HubNamespaces = []string{"second"}
	saidAgain := enrolled(t, options)
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

// If a token has leaked, the administrator deletes the Secret that it is bound to.
func TestATokenGoesWithItsSecret(t *testing.T) {
	kit.Long(t, "the API server forgets a token late")
	t.Parallel() // it waits until the API server's cache expires
	options := optionsFor(t, "leaky")
	enrolled(t, options)
	leaked := agentOf(t, enrol.Options{Out: kept(t, options)})
	awaitRights(t, leaked, "leaky")
	kit.Must(t, kubectl(t.Context(), hub, "delete", "secret", "--namespace", agents, "leaky-enrolment"))
	kit.Eventually(t, func() string { return refused(t, leaked, "leaky") })
	enrolled(t, options)
	awaitRights(t, agentOf(t, options), "leaky")
	if problem := refused(t, leaked, "leaky"); problem != "" {
		t.Errorf("after the next enrolment %s", problem)
	}
}

// An enrolment that would take over foreign objects is refused, before anything is
// created.
func TestEnrolRefuses(t *testing.T) {
	hub.CreateNamespace(t, "production")
	kit.Must(t, kubectl(t.Context(), hub, "create", "serviceaccount", "--namespace", "krake-agents", "taken"))
	full := t.TempDir()
	kit.Must(t, os.WriteFile(filepath.Join(full, "mine"), nil, 0o600))
	for _, c := range []struct {
		why, cluster string
		change       func(*enrol.Options)
		want         string
	}{
		{"an agent of the hub has the name", "taken", func(*enrol.Options) {}, "is not of an enrolment"},
		{"the namespace has other things in it", "production", func(*enrol.Options) {}, "name it by --hub-namespaces"},
		{"the folder has other things in it", "refused", func(o *enrol.Options) { o.Out = full }, "name an empty folder"},
	} {
		t.Run(c.why, func(t *testing.T) {
			options := optionsFor(t, c.cluster)
			c.change(&options)
			err := enrol.Enrol(t.Context(), options, &strings.Builder{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			secrets, err := hub.CoreV1().Secrets("krake-agents").List(t.Context(), metav1.ListOptions{LabelSelector: "krake.dev/enrolment=" + c.cluster})
			if err != nil || len(secrets.Items) > 0 {
				t.Errorf("something was made: %v", err)
			}
		})
	}
	options := optionsFor(t, "production")
	options.HubNamespaces = []string{"production"}
	enrolled(t, options)
	namespace, err := hub.CoreV1().Namespaces().Get(t.Context(), "production", get)
	if err != nil || namespace.Labels["krake.dev/enrolment"] != "" || namespace.Labels["pod-security.kubernetes.io/enforce"] != "" {
		t.Errorf("the namespace, which is somebody's, was changed: %v %v", namespace, err)
	}
}

// A hub without one of the policies would not isolate its agents.
func TestEnrolWantsThePolicies(t *testing.T) {
	kit.Must(t, kubectl(t.Context(), hub, "delete", "validatingadmissionpolicybinding", "krake-agents-leases"))
	err := enrol.Enrol(t.Context(), optionsFor(t, "early"), &strings.Builder{})
	if err == nil || !strings.Contains(err.Error(), "apply manifests/overlays/hub") {
		t.Errorf("it is not refused: %v", err)
	}
	kit.Must(t, apply(t.Context(), hub, filepath.Join(hub.Dir(), "manifests", "base", "policies")))
}

// A target has one name: with two names, its agents would take each other's objects for
// those of a former cluster.
func TestOneNameForATarget(t *testing.T) {
	options := optionsFor(t, "twin")
	enrolled(t, options)
	for name, target := range map[string]string{"krake-cluster-else": "b", "krake-cluster-new": "", "krake-cluster-twin": "a", "krake-agent-else": "a"} {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"krake.dev/target": target}}}
		kit.Must(t, second(hub.CoordinationV1().Leases(agents).Create(t.Context(), lease, metav1.CreateOptions{})))
	}
	enrolled(t, options)
	kit.Must(t, kubectl(t.Context(), hub, "annotate", "--overwrite", "--namespace", agents, "lease", "krake-cluster-else",
		"krake.dev/target=a"))
	err := enrol.Enrol(t.Context(), options, &strings.Builder{})
	if err == nil || !strings.Contains(err.Error(), "cluster twin is the same target as cluster else") {
		t.Errorf("it is not refused: %v", err)
	}
}

// The ClusterRole of the enrolment has the rights to run Applications on the cluster;
// no user gets it automatically.
func TestDeployTo(t *testing.T) {
	enrolled(t, optionsFor(t, "deploy"))
	const role = "krake-deploy-to-deploy"
	kit.Must(t, kubectl(t.Context(), hub, "create", "clusterrolebinding", role+"-USER", "--clusterrole="+role, "--user=USER"))
	may := func(user, cluster string) bool { // as the webhook asks
		return allows(t, hub, authorizationv1.SubjectAccessReviewSpec{
			User: user, Groups: []string{"system:authenticated"},
			ResourceAttributes: &attributes{Verb: "deploy-to", Group: "krake.dev", Resource: "clusters", Name: cluster},
		})
	}
	kit.Eventually(t, func() string { return notYet(may("USER", "deploy"), "the user may not deploy to the cluster") })
	if may("USER", "again") || may("somebody", "deploy") {
		t.Error("more may deploy than was said, or to more clusters")
	}
}
