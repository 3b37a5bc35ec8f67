package enrol

import (
	"path/filepath"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/krake-observer/krake-observer/internal/enrol"
	"github.com/krake-observer/krake-observer/test/kit"
)

// agentOf returns the client that the agent makes from the files of its cluster.
func agentOf(t *testing.T, options enrol.Options) kubernetes.Interface {
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

// application creates an Application as the webhook leaves it.
func application(t *testing.T, namespace, name, cluster string) {
	t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name:        name,
		Annotations: map[string]string{"krake.dev/application": "v1", "krake.dev/cluster": cluster},
		Labels:      map[string]string{"krake.dev/cluster": cluster, "holder.krake.dev/" + cluster: "true"},
	}}
	kit.Must(t, second(hub.CoreV1().ConfigMaps(namespace).Create(t.Context(), cm, metav1.CreateOptions{})))
}

// marked is a ConfigMap that the policies let an agent write: only its rights decide.
func marked(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"krake.dev/owned-by": "x"}, Annotations: map[string]string{"krake.dev/owner": "x"},
	}}
}

// claim makes an agent's first write to an Application.
func claim(t *testing.T, agent kubernetes.Interface, namespace, name, cluster string) error {
	t.Helper()
	patch := `{"metadata":{"finalizers":["` + cluster + `.krake.dev/resources"]},"data":{"inventory.` + cluster + `":"[]"}}`
	return second(agent.CoreV1().ConfigMaps(namespace).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}))
}

// attempt is a row of a matrix: a request, and whether the API server allows it.
type attempt struct {
	what    string
	try     func() error
	allowed bool
}

func check(t *testing.T, attempts []attempt) {
	t.Helper()
	for _, a := range attempts {
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

// An enrolment grants exactly what the agent does: it reads and marks the Applications
// of its namespaces, and nothing else on the hub.
func TestRightsOnTheHub(t *testing.T) {
	options := optionsFor(t, "east")
	enrolled(t, options)
	hub.CreateNamespace(t, "elsewhere")
	application(t, "east", "ours", "east")
	application(t, "east", "theirs", "local")
	application(t, "elsewhere", "east", "east")
	kit.Must(t, second(hub.CoreV1().ConfigMaps("east").Create(t.Context(), marked("marked"), metav1.CreateOptions{})))
	agent := agentOf(t, options)
	awaitRights(t, agent, "east")

	ctx := t.Context()
	lists := func(namespace string) func() error { return func() error { return list(t, agent, namespace) } }
	watch := func(namespace string) func() error {
		return func() error {
			changes, err := agent.CoreV1().ConfigMaps(namespace).Watch(ctx, metav1.ListOptions{})
			if err == nil {
				changes.Stop()
			}
			return err
		}
	}
	patch := func(namespace, name string) func() error {
		return func() error { return claim(t, agent, namespace, name, "east") }
	}
	say := func(namespace string) func() error {
		event := &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "x-", Namespace: namespace},
			EventTime:  metav1.NowMicro(), Type: "Normal", Reason: "Test", Action: "Test",
			ReportingController: "krake-agent", ReportingInstance: "x",
			Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: "x"},
		}
		return func() error {
			return second(agent.EventsV1().Events(namespace).Create(ctx, event, metav1.CreateOptions{}))
		}
	}
	configMaps, leases := agent.CoreV1().ConfigMaps("east"), agent.CoordinationV1().Leases("krake-agents")
	createLease := func(name string) func() error {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}
		return func() error { return second(leases.Create(ctx, lease, metav1.CreateOptions{})) }
	}
	check(t, []attempt{
		{"list the ConfigMaps of its namespace", lists("east"), true},
		{"watch them", watch("east"), true},
		{"claim its Application", patch("east", "ours"), true},
		{"tell of it", say("east"), true},
		{"tell of its Lease", say("krake-agents"), true},
		{"create its Lease", createLease("krake-cluster-east"), true},
		{"renew its Lease", func() error {
			found, err := leases.Get(ctx, "krake-cluster-east", get)
			if err != nil {
				return err
			}
			return second(leases.Update(ctx, found, metav1.UpdateOptions{}))
		}, true},

		{"claim another's Application in its namespace", patch("east", "theirs"), false},
		{"claim its own in another namespace", patch("elsewhere", "east"), false},
		{"list the ConfigMaps of another namespace", lists("elsewhere"), false},
		{"watch them", watch("elsewhere"), false},
		{"list those of all namespaces", lists(""), false},
		{"watch them", watch(""), false},
		{"list those of the agents' namespace", lists("krake-agents"), false},
		{"get a ConfigMap, which it does not need", func() error { return second(configMaps.Get(ctx, "ours", get)) }, false},
		{"create a ConfigMap that has its marks", func() error { return second(configMaps.Create(ctx, marked("x"), metav1.CreateOptions{})) }, false},
		{"delete one that has its marks", func() error { return configMaps.Delete(ctx, "marked", metav1.DeleteOptions{}) }, false},
		{"update one that has its marks", func() error { return second(configMaps.Update(ctx, marked("marked"), metav1.UpdateOptions{})) }, false},
		{"delete its Application", func() error { return configMaps.Delete(ctx, "ours", metav1.DeleteOptions{}) }, false},
		{"tell of something elsewhere", say("elsewhere"), false},
		{"list Secrets", func() error { return second(agent.CoreV1().Secrets("east").List(ctx, metav1.ListOptions{})) }, false},
		{"read what its token is bound to", func() error {
			return second(agent.CoreV1().Secrets("krake-agents").Get(ctx, "east-enrolment", get))
		}, false},
		{"make another token", func() error {
			accounts := agent.CoreV1().ServiceAccounts("krake-agents")
			return second(accounts.CreateToken(ctx, "east", &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))
		}, false},
		{"create the Lease of another cluster", createLease("krake-cluster-west"), false},
		{"read the Lease of another cluster", func() error { return second(leases.Get(ctx, "krake-cluster-local", get)) }, false},
		{"list Leases", func() error { return second(leases.List(ctx, metav1.ListOptions{})) }, false},
		{"delete its Lease", func() error { return leases.Delete(ctx, "krake-cluster-east", metav1.DeleteOptions{}) }, false},
		{"list Pods", func() error { return second(agent.CoreV1().Pods("east").List(ctx, metav1.ListOptions{})) }, false},
		{"list namespaces", func() error { return second(agent.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})) }, false},
	})
}
