package clusters

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// attempt is a request of one cluster's agent about an Application of another cluster.
type attempt struct {
	what string
	do   func(context.Context, kubernetes.Interface, types.NamespacedName) error
}

// patched is an attempt to change the Application with a patch of this type.
func patched(what string, kind types.PatchType, body string) attempt {
	options := metav1.PatchOptions{}
	if kind == types.ApplyPatchType {
		options = metav1.PatchOptions{FieldManager: "north", Force: new(true)}
	}
	return onConfigMaps(what, func(ctx context.Context, in configMaps, name string) error {
		return second(in.Patch(ctx, name, kind, []byte(body), options))
	})
}

type (
	configMaps = coreclient.ConfigMapInterface
	leases     = coordinationclient.LeaseInterface
)

// onConfigMaps is an attempt on the ConfigMaps of the Application's namespace.
func onConfigMaps(what string, try func(ctx context.Context, in configMaps, name string) error) attempt {
	return attempt{what, func(ctx context.Context, as kubernetes.Interface, app types.NamespacedName) error {
		return try(ctx, as.CoreV1().ConfigMaps(app.Namespace), app.Name)
	}}
}

// onLeases is an attempt on the Leases of the agents.
func onLeases(what string, try func(ctx context.Context, in leases) error) attempt {
	return attempt{what, func(ctx context.Context, as kubernetes.Interface, _ types.NamespacedName) error {
		return try(ctx, as.CoordinationV1().Leases(application.AgentsNamespace))
	}}
}

func second[T any](_ T, err error) error { return err }

// merged is an attempt to change the Application with a merge patch.
func merged(what, body string) attempt { return patched(what, types.MergePatchType, body) }

// writes returns attempts to change or delete the Application.
func writes() []attempt {
	return []attempt{
		merged("patch data spec.manifest", `{"data": {"spec.manifest": ""}}`),
		merged("patch data status", `{"data": {"status": "{\"state\": \"FORGED\"}"}}`),
		merged("patch data status.learned", `{"data": {"status.learned": "[]"}}`),
		merged("patch data status.last_observed_manifest", `{"data": {"status.last_observed_manifest": "[]"}}`),
		merged("patch data status.last_applied_manifest", `{"data": {"status.last_applied_manifest": "[]"}}`),
		merged("patch data inventory.south", `{"data": {"inventory.south": null}}`),
		merged("patch data, another key", `{"data": {"other": "value"}}`),
		merged("patch binaryData", `{"binaryData": {"inventory.east": "e30="}}`),
		merged("patch label holder.krake.dev/south", `{"metadata": {"labels": {"holder.krake.dev/south": null}}}`),
		merged("patch label holder.krake.dev/north", `{"metadata": {"labels": {"holder.krake.dev/north": "forged"}}}`),
		merged("patch label krake.dev/state", `{"metadata": {"labels": {"krake.dev/state": "FAILED"}}}`),
		merged("patch another label", `{"metadata": {"labels": {"team": "north"}}}`),
		merged("patch finalizers: none", `{"metadata": {"finalizers": null}}`),
		merged("patch finalizers: more", `{"metadata": {"finalizers": ["north.krake.dev/resources", "south.krake.dev/resources", "east.krake.dev/resources"]}}`),
		merged("patch annotation krake.dev/cluster", `{"metadata": {"annotations": {"krake.dev/cluster": "north"}}}`),
		merged("patch annotation krake.dev/application", `{"metadata": {"annotations": {"krake.dev/application": null}}}`),
		merged("patch annotation krake.dev/force-delete", `{"metadata": {"annotations": {"krake.dev/force-delete": "south"}}}`),
		merged("patch another annotation", `{"metadata": {"annotations": {"team": "north"}}}`),
		merged("patch ownerReferences", `{"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "b"}]}}`),
		merged("patch immutable", `{"immutable": true}`),
		patched("patch as JSON Patch", types.JSONPatchType, `[{"op": "remove", "path": "/data/inventory.south"}]`),
		patched("patch as strategic merge", types.StrategicMergePatchType, `{"data": {"status": "{\"state\": \"FORGED\"}"}}`),
		patched("patch as server-side apply", types.ApplyPatchType, `{"apiVersion": "v1", "kind": "ConfigMap", "data": {"status": "{\"state\": \"FORGED\"}"}}`),
		onConfigMaps("update", func(ctx context.Context, in configMaps, name string) error {
			return second(in.Update(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.UpdateOptions{}))
		}),
		onConfigMaps("delete", func(ctx context.Context, in configMaps, name string) error {
			return in.Delete(ctx, name, metav1.DeleteOptions{})
		}),
		onConfigMaps("deletecollection", func(ctx context.Context, in configMaps, _ string) error {
			return in.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		}),
		onConfigMaps("create one for that cluster", func(ctx context.Context, in configMaps, _ string) error {
			return second(in.Create(ctx, kit.Application("", "forged", "", kit.On("south")), metav1.CreateOptions{}))
		}),
	}
}

// reads returns attempts to read the Application, alone or with others of its
// namespace.
func reads() []attempt {
	return []attempt{
		onConfigMaps("list", func(ctx context.Context, in configMaps, _ string) error {
			return second(in.List(ctx, metav1.ListOptions{LabelSelector: application.HolderLabel("south")}))
		}),
		onConfigMaps("watch", func(ctx context.Context, in configMaps, _ string) error {
			watch, err := in.Watch(ctx, metav1.ListOptions{})
			if err == nil {
				watch.Stop()
			}
			return err
		}),
	}
}

// strays returns attempts to read what no agent needs.
func strays() []attempt {
	return []attempt{
		{"list Pods", func(ctx context.Context, as kubernetes.Interface, app types.NamespacedName) error {
			return second(as.CoreV1().Pods(app.Namespace).List(ctx, metav1.ListOptions{}))
		}},
		{"list Secrets", func(ctx context.Context, as kubernetes.Interface, app types.NamespacedName) error {
			return second(as.CoreV1().Secrets(app.Namespace).List(ctx, metav1.ListOptions{}))
		}},
		{"list namespaces", func(ctx context.Context, as kubernetes.Interface, _ types.NamespacedName) error {
			return second(as.CoreV1().Namespaces().List(ctx, metav1.ListOptions{}))
		}},
		{"list the ConfigMaps of the agents", func(ctx context.Context, as kubernetes.Interface, _ types.NamespacedName) error {
			return second(as.CoreV1().ConfigMaps(application.AgentsNamespace).List(ctx, metav1.ListOptions{}))
		}},
		onConfigMaps("get", func(ctx context.Context, in configMaps, name string) error {
			return second(in.Get(ctx, name, metav1.GetOptions{}))
		}),
		{"list in all namespaces", func(ctx context.Context, as kubernetes.Interface, _ types.NamespacedName) error {
			return second(as.CoreV1().ConfigMaps(metav1.NamespaceAll).List(ctx, metav1.ListOptions{}))
		}},
	}
}

// tellings returns attempts to report on the Application.
func tellings() []attempt {
	return []attempt{{"create an Event about it", func(ctx context.Context, as kubernetes.Interface, name types.NamespacedName) error {
		return second(as.EventsV1().Events(name.Namespace).Create(ctx, &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, GenerateName: "forged-"},
			EventTime:  metav1.NowMicro(), Type: corev1.EventTypeWarning, Reason: "Forged", Action: "Forge",
			ReportingController: "krake-agent", ReportingInstance: "north",
			Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: name.Namespace, Name: name.Name},
		}, metav1.CreateOptions{}))
	}}}
}

// ownership returns attempts on an Application of its own that no agent needs.
func ownership() []attempt {
	var found []attempt
	for _, each := range writes() {
		if slices.Contains([]string{"update", "delete", "deletecollection", "create one for that cluster", "patch data spec.manifest"}, each.what) {
			found = append(found, each)
		}
	}
	return append(found, onLeases("delete its own Lease", func(ctx context.Context, in leases) error {
		return in.Delete(ctx, application.HubLease("north"), metav1.DeleteOptions{})
	}))
}

// takeovers returns attempts to become the other cluster: with its Leases, its Secret,
// or its ServiceAccount. They concern no Application.
func takeovers(own *rest.Config) []attempt {
	var found []attempt
	for _, name := range []string{application.HubLease("south"), application.TargetLease("south"), "other"} {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: application.AgentsNamespace, Name: name}}
		found = append(found,
			onLeases("get Lease "+name, func(ctx context.Context, in leases) error {
				return second(in.Get(ctx, name, metav1.GetOptions{}))
			}),
			onLeases("create Lease "+name, func(ctx context.Context, in leases) error {
				return second(in.Create(ctx, lease, metav1.CreateOptions{}))
			}),
			onLeases("update Lease "+name, func(ctx context.Context, in leases) error {
				return second(in.Update(ctx, lease, metav1.UpdateOptions{}))
			}),
			onLeases("patch Lease "+name, func(ctx context.Context, in leases) error {
				return second(in.Patch(ctx, name, types.MergePatchType, []byte(`{"spec": {"holderIdentity": "north"}}`), metav1.PatchOptions{}))
			}),
			onLeases("delete Lease "+name, func(ctx context.Context, in leases) error {
				return in.Delete(ctx, name, metav1.DeleteOptions{})
			}),
		)
	}
	return append(found,
		onLeases("list Leases", func(ctx context.Context, in leases) error { return second(in.List(ctx, metav1.ListOptions{})) }),
		attempt{"list Secrets of the agents", func(ctx context.Context, as kubernetes.Interface, _ types.NamespacedName) error {
			return second(as.CoreV1().Secrets(application.AgentsNamespace).List(ctx, metav1.ListOptions{}))
		}},
		attempt{"get the Secret of its enrolment", func(ctx context.Context, as kubernetes.Interface, _ types.NamespacedName) error {
			return second(as.CoreV1().Secrets(application.AgentsNamespace).Get(ctx, "south-enrolment", metav1.GetOptions{}))
		}},
		attempt{"create a token of its ServiceAccount", func(ctx context.Context, as kubernetes.Interface, _ types.NamespacedName) error {
			accounts := as.CoreV1().ServiceAccounts(application.AgentsNamespace)
			return second(accounts.CreateToken(ctx, "south", &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))
		}},
		attempt{"impersonate its ServiceAccount", func(ctx context.Context, _ kubernetes.Interface, name types.NamespacedName) error {
			config := rest.CopyConfig(own)
			config.Impersonate = rest.ImpersonationConfig{UserName: kit.AgentUser("south")}
			as, err := kubernetes.NewForConfig(config)
			if err != nil {
				return err
			}
			return second(as.CoreV1().ConfigMaps(name.Namespace).List(ctx, metav1.ListOptions{}))
		}},
	)
}

// The agent of the cluster
// north attacks an Application of the cluster south on the hub. The API server refuses every attempt,
// without any of our code. If each cluster has its own namespace, that includes all reads; in a shared
// namespace it does not. An Application that moved from north to south is no exception, except for its
// objects in north. Of its own Applications, north may neither write the spec nor delete one.
func TestAgentCannotTouchApplicationsOfAnotherCluster(t *testing.T) {
	t.Parallel()
	newNamespace(t, "north", env.hub)
	newNamespace(t, "south", env.hub)
	newNamespace(t, "shared", env.hub)
	south := enrol(t, "south", env.east, []string{"south", "shared"}).onHub(t)
	config := configOf(t, enrol(t, "north", env.west, []string{"north", "shared"}).Hub)
	north := clientOf(t, config)

	apart := newApp(t, "south", "south", "apart", settingsManifest("right"), "")
	beside := newApp(t, "south", "shared", "beside", settingsManifest("right"), "")
	own := newApp(t, "north", "north", "own", settingsManifest("right"), "")
	own.claim(t, north, "north")
	left := newApp(t, "north", "shared", "left", settingsManifest("right"), "")
	left.claim(t, north, "north")
	left.Annotate(t, "cluster", "south")
	versions := map[app]string{}
	for _, each := range []app{apart, beside, left} {
		each.claim(t, south, "south")
		versions[each] = each.Stored(t).ResourceVersion
	}
	m := &matrix{columns: []column{{"its own namespace", apart}, {"a shared namespace", beside}, {"left north", left}}}
	for _, each := range append(reads(), tellings()...) {
		m.try(t, north, each, refused, allowed, allowed)
	}
	for _, each := range append(writes(), strays()...) {
		m.try(t, north, each, refused, refused, refused)
	}
	m.columns = []column{{"its own Application", own}}
	for _, each := range append(ownership(), strays()...) {
		m.try(t, north, each, refused)
	}
	for _, each := range takeovers(config) {
		m.try(t, north, each, refused)
	}
	t.Logf("as the agent of north, with Applications of south:\n%s", m)
	for each, version := range versions {
		if now := each.Stored(t).ResourceVersion; now != version {
			t.Errorf("%s was changed after all", each)
		}
	}
	for _, each := range []attempt{
		merged("patch data inventory.north", `{"data": {"inventory.north": null}}`),
		patched("drop its own label and finalizer", types.StrategicMergePatchType,
			`{"metadata": {"labels": {"holder.krake.dev/north": null}, "$deleteFromPrimitiveList/finalizers": ["north.krake.dev/resources"]}}`),
	} {
		if err := each.do(t.Context(), north, left.NamespacedName); err != nil {
			t.Errorf("what north holds of %s is its own: %s: %v", left, each.what, err)
		}
	}
}

// claim records, as an agent, that it is about to create an object.
func (a app) claim(t *testing.T, as kubernetes.Interface, cluster string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata": {"finalizers": [%q]}, "data": {%q: "[]", "status": "{}"}}`, application.Finalizer(cluster), application.InventoryKey(cluster))
	_, err := as.CoreV1().ConfigMaps(a.Namespace).Patch(t.Context(), a.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	kit.Must(t, err)
}

// matrix has the attempts, and the API server's answers.
type matrix struct {
	columns []column
	text    strings.Builder
}

type column struct {
	where string
	app   app
}

const (
	refused = "403"
	allowed = "allowed"
)

// try makes an attempt in each column, and fails unless the answer is the wanted one.
func (m *matrix) try(t *testing.T, as kubernetes.Interface, each attempt, want ...string) {
	t.Helper()
	fmt.Fprintf(&m.text, "%-50s", each.what)
	for i, want := range want {
		column := m.columns[i]
		got := answerOf(each.do(t.Context(), as, column.app.NamespacedName))
		fmt.Fprintf(&m.text, " %-20s", got)
		if got != want {
			t.Errorf("%s, %s: %s, want %s", each.what, column.where, got, want)
		}
	}
	m.text.WriteByte('\n')
}

func answerOf(err error) string {
	switch {
	case err == nil:
		return allowed
	case apierrors.IsForbidden(err):
		return refused
	}
	return err.Error()
}

// String returns a line for each attempt.
func (m *matrix) String() string { return m.text.String() }
