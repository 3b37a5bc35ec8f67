package clusters

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// attempt is a request of one cluster's agent about an Application of another cluster.
type attempt struct {
	what string
	do   func(*testing.T, kubernetes.Interface, types.NamespacedName) error
}

const (
	ofNamespace = " /api/v1/namespaces/NAMESPACE/"
	ofApp       = ofNamespace + "configmaps/APP"
	ofLeases    = " /apis/coordination.k8s.io/v1/namespaces/krake-agents/leases"
	ofAgents    = " /api/v1/namespaces/krake-agents/"
)

// sent is an attempt that is one request, as [kit.Send] makes it. NAMESPACE and APP stand for those of the Application.
func sent(what, request, body string) attempt {
	return attempt{what, func(t *testing.T, as kubernetes.Interface, app types.NamespacedName) error {
		of := strings.NewReplacer("NAMESPACE", app.Namespace, "APP", app.Name)
		return kit.Send(t, as, of.Replace(request), of.Replace(body))()
	}}
}

// patched is an attempt to change the Application with a merge patch, or with a JSON patch.
func patched(what, body string) attempt { return sent(what, "PATCH"+ofApp, body) }

// strategic is an attempt to change the Application with a strategic merge patch.
func strategic(what, body string) attempt {
	return attempt{what, func(t *testing.T, as kubernetes.Interface, app types.NamespacedName) error {
		in := as.CoreV1().ConfigMaps(app.Namespace)
		return kit.ErrorOf(in.Patch(t.Context(), app.Name, types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{}))
	}}
}

// writes returns attempts to change or delete the Application.
func writes() []attempt {
	return []attempt{
		patched("patch data spec.manifest", `{"data": {"spec.manifest": ""}}`),
		patched("patch data status", `{"data": {"status": "{\"state\": \"FORGED\"}"}}`),
		patched("patch data status.learned", `{"data": {"status.learned": "[]"}}`),
		patched("patch data status.last_observed_manifest", `{"data": {"status.last_observed_manifest": "[]"}}`),
		patched("patch data status.last_applied_manifest", `{"data": {"status.last_applied_manifest": "[]"}}`),
		patched("patch data inventory.south", `{"data": {"inventory.south": null}}`),
		patched("patch data, another key", `{"data": {"other": "value"}}`),
		patched("patch binaryData", `{"binaryData": {"inventory.east": "e30="}}`),
		patched("patch label holder.krake.dev/south", `{"metadata": {"labels": {"holder.krake.dev/south": null}}}`),
		patched("patch label holder.krake.dev/north", `{"metadata": {"labels": {"holder.krake.dev/north": "forged"}}}`),
		patched("patch label krake.dev/state", `{"metadata": {"labels": {"krake.dev/state": "FAILED"}}}`),
		patched("patch another label", `{"metadata": {"labels": {"team": "north"}}}`),
		patched("patch finalizers: none", `{"metadata": {"finalizers": null}}`),
		patched("patch finalizers: more", `{"metadata": {"finalizers": ["north.krake.dev/resources", "south.krake.dev/resources", "east.krake.dev/resources"]}}`),
		patched("patch annotation krake.dev/cluster", `{"metadata": {"annotations": {"krake.dev/cluster": "north"}}}`),
		patched("patch annotation krake.dev/application", `{"metadata": {"annotations": {"krake.dev/application": null}}}`),
		patched("patch annotation krake.dev/force-delete", `{"metadata": {"annotations": {"krake.dev/force-delete": "south"}}}`),
		patched("patch another annotation", `{"metadata": {"annotations": {"team": "north"}}}`),
		patched("patch ownerReferences", `{"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "b"}]}}`),
		patched("patch immutable", `{"immutable": true}`),
		patched("patch as JSON Patch", `[{"op": "remove", "path": "/data/inventory.south"}]`),
		strategic("patch as strategic merge", `{"data": {"status": "{\"state\": \"FORGED\"}"}}`),
		sent("patch as server-side apply", "PATCH"+ofApp+"?fieldManager=north&force=true", `{"apiVersion": "v1", "kind": "ConfigMap", "data": {"status": "{\"state\": \"FORGED\"}"}}`),
		sent("update", "PUT"+ofApp, `{"metadata": {"name": "APP"}}`),
		sent("delete", "DELETE"+ofApp, ""),
		sent("deletecollection", "DELETE"+ofNamespace+"configmaps", ""),
		sent("create one for that cluster", "POST"+ofNamespace+"configmaps",
			`{"metadata": {"name": "forged", "annotations": {"krake.dev/application": "v1", "krake.dev/cluster": "south"}}}`),
	}
}

// reads returns attempts to read the Application, alone or with others of its
// namespace.
func reads() []attempt {
	return []attempt{
		sent("list", "GET"+ofNamespace+"configmaps?labelSelector="+application.HolderLabel("south"), ""),
		sent("watch", "GET"+ofNamespace+"configmaps?watch=true&timeoutSeconds=1", ""),
	}
}

// strays returns attempts to read what no agent needs.
func strays() []attempt {
	return []attempt{
		sent("list Pods", "GET"+ofNamespace+"pods", ""),
		sent("list Secrets", "GET"+ofNamespace+"secrets", ""),
		sent("list namespaces", "GET /api/v1/namespaces", ""),
		sent("list the ConfigMaps of the agents", "GET"+ofAgents+"configmaps", ""),
		sent("get", "GET"+ofApp, ""),
		sent("list in all namespaces", "GET /api/v1/configmaps", ""),
	}
}

// tellings returns attempts to report on the Application.
func tellings() []attempt {
	return []attempt{sent("create an Event about it", "POST /apis/events.k8s.io/v1/namespaces/NAMESPACE/events",
		`{"metadata": {"generateName": "forged-"}, "eventTime": "2026-01-02T15:04:05.000000Z", "type": "Warning", "reason": "Forged", "action": "Forge",
		"reportingController": "krake-agent", "reportingInstance": "north", "regarding": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "NAMESPACE", "name": "APP"}}`)}
}

// ownership returns attempts on an Application of its own that no agent needs.
func ownership() []attempt {
	var found []attempt
	for _, each := range writes() {
		if slices.Contains([]string{"update", "delete", "deletecollection", "create one for that cluster", "patch data spec.manifest"}, each.what) {
			found = append(found, each)
		}
	}
	return append(found, sent("delete its own Lease", "DELETE"+ofLeases+"/"+application.HubLease("north"), ""))
}

// takeovers returns attempts to become the other cluster: with its Leases, its Secret,
// or its ServiceAccount. They concern no Application.
func takeovers(own *rest.Config) []attempt {
	var found []attempt
	for _, name := range []string{application.HubLease("south"), application.TargetLease("south"), "other"} {
		lease := `{"metadata": {"name": "` + name + `"}}`
		found = append(found,
			sent("get Lease "+name, "GET"+ofLeases+"/"+name, ""),
			sent("create Lease "+name, "POST"+ofLeases, lease),
			sent("update Lease "+name, "PUT"+ofLeases+"/"+name, lease),
			sent("patch Lease "+name, "PATCH"+ofLeases+"/"+name, `{"spec": {"holderIdentity": "north"}}`),
			sent("delete Lease "+name, "DELETE"+ofLeases+"/"+name, ""),
		)
	}
	return append(found,
		sent("list Leases", "GET"+ofLeases, ""),
		sent("list Secrets of the agents", "GET"+ofAgents+"secrets", ""),
		sent("get the Secret of its enrolment", "GET"+ofAgents+"secrets/south-enrolment", ""),
		sent("create a token of its ServiceAccount", "POST"+ofAgents+"serviceaccounts/south/token", "{}"),
		attempt{"impersonate its ServiceAccount", func(t *testing.T, _ kubernetes.Interface, name types.NamespacedName) error {
			config := rest.CopyConfig(own)
			config.Impersonate = rest.ImpersonationConfig{UserName: kit.AgentUser("south")}
			return kit.ErrorOf(clientOf(t, config).CoreV1().ConfigMaps(name.Namespace).List(t.Context(), metav1.ListOptions{}))
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
	south, config := clientOf(t, onHub(t, "south", "south", "shared")), onHub(t, "north", "north", "shared")
	north := clientOf(t, config)

	apart := newSettings(t, "south", "south", "apart")
	beside := newSettings(t, "south", "shared", "beside")
	own := newSettings(t, "north", "north", "own")
	own.claim(t, north, "north")
	left := newSettings(t, "north", "shared", "left")
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
		patched("patch data inventory.north", `{"data": {"inventory.north": null}}`),
		strategic("drop its own label and finalizer",
			`{"metadata": {"labels": {"holder.krake.dev/north": null}, "$deleteFromPrimitiveList/finalizers": ["north.krake.dev/resources"]}}`),
	} {
		if err := each.do(t, north, left.NamespacedName); err != nil {
			t.Errorf("what north holds of %s is its own: %s: %v", left, each.what, err)
		}
	}
}

// claim records, as an agent, that it is about to create an object.
func (a app) claim(t *testing.T, as kubernetes.Interface, cluster string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata": {"finalizers": [%q]}, "data": {%q: "[]", "status": "{}"}}`, application.Finalizer(cluster), application.InventoryKey(cluster))
	kit.Must(t, strategic("claim", patch).do(t, as, a.NamespacedName))
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
		got := answerOf(each.do(t, as, column.app.NamespacedName))
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
