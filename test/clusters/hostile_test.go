package clusters

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// forbidden are objects that no hub may request from an agent, unless the agent's
// cluster has allowed it.
var forbidden = map[string]string{ //nolint:gosec // the password is none
	"cluster-role":         `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a9}, rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]}`,
	"cluster-role-binding": `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: a9}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{kind: ServiceAccount, name: default, namespace: a9}]}`,
	"role-binding":         `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: a9}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}, subjects: [{kind: ServiceAccount, name: default, namespace: a9}]}`,
	"namespace":            `{apiVersion: v1, kind: Namespace, metadata: {name: a9-more}}`,
	"definition":           `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: as.example.org}, spec: {group: example.org, names: {kind: A, plural: as}, scope: Namespaced, versions: []}}`,
	"webhook":              `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: a9}}`,
	"policy":               `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: krake-configmaps}, spec: {}}`,
	"elsewhere":            `{apiVersion: v1, kind: ConfigMap, metadata: {name: a9, namespace: kube-system}, data: {a: b}}`,
	"beside-the-agent":     `{apiVersion: v1, kind: ServiceAccount, metadata: {name: a9, namespace: krake-agents}}`,
	"secret":               `{apiVersion: v1, kind: Secret, metadata: {name: a9}, stringData: {password: a9}}`,
	"application":          `{apiVersion: v1, kind: ConfigMap, metadata: {name: a9, annotations: {krake.dev/application: v1}}, data: {spec.manifest: ""}}`,
	"marked":               `{apiVersion: v1, kind: ConfigMap, metadata: {name: a9, labels: {krake.dev/owned-by: "0123456789abcdef"}}, data: {a: b}}`,
	"list":                 `{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a9}}]}`,
}

// An attacker controls the hub. The webhook is bypassed, and the labels let the agent see every Application. Without
// the key of the webhook, nothing is carried out. With it, the agent refuses everything that its cluster has not
// allowed, and reports it; nothing is written.
func TestHostileHubGetsNothingThatItsClusterForbids(t *testing.T) {
	t.Parallel()
	const namespace = "a9"
	newNamespace(t, namespace, planes()...)
	ninth := enrol(t, "ninth", env.east, []string{namespace}, quickLease()...)
	takeHub(t, namespace)
	kit.Must(t, ninth.Start(t.Context()))
	begin := env.east.Mark(t)
	_, err := env.hub.CoreV1().ConfigMaps(namespace).Create(t.Context(), forged(ninth.Name, namespace, "unsigned", settingsManifest("right")), metav1.CreateOptions{})
	kit.Must(t, err)
	for name, manifest := range forbidden {
		if cm := forge(t, ninth.Name, namespace, name, manifest); cm.Data[application.LastAppliedKey] != "" {
			t.Fatalf("the webhook has admitted %s: the hub is not taken", name)
		}
	}
	forge(t, ninth.Name, namespace, "harmless", `{apiVersion: v1, kind: ConfigMap, metadata: {name: harmless}, data: {a: b}}`)
	mustHave(t, kit.Timeout, env.east, namespace, "harmless", "a", "b")
	for name := range forbidden {
		app{env.hub.App(namespace, name)}.awaitReconciled(t, kit.Timeout, metav1.ConditionFalse, "Refused")
	}
	app{env.hub.App(namespace, "unsigned")}.awaitReconciled(t, kit.Timeout, metav1.ConditionFalse, "NotAdmitted")
	writes := begin.Requests(t, kit.By(kit.AgentUser(ninth.Name)), isWork)
	if len(writes) != 1 || writes[0].Name() != "harmless" {
		t.Errorf("writes, of which only that of harmless is right: %s", kit.List(writes))
	}
}

// takeHub excludes a namespace from the webhook.
func takeHub(t *testing.T, namespace string) {
	t.Helper()
	patch := fmt.Appendf(nil, `[{"op": "add", "path": "/webhooks/0/namespaceSelector/matchExpressions/0/values/-", "value": %q}]`, namespace)
	_, err := env.hub.AdmissionregistrationV1().MutatingWebhookConfigurations().Patch(t.Context(), "krake-webhook", types.JSONPatchType, patch, metav1.PatchOptions{})
	kit.Must(t, err)
	probe := forged("none", namespace, "probe", "")
	kit.Eventually(t, func() string {
		made, err := env.hub.CoreV1().ConfigMaps(namespace).Create(t.Context(), probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil || made.Data[application.LastAppliedKey] != "" {
			return fmt.Sprintf("the webhook is still called (%v)", err)
		}
		return ""
	})
}

// forge creates an Application as if the webhook had admitted it, with its key.
func forge(t *testing.T, cluster, namespace, name, manifest string) *corev1.ConfigMap {
	t.Helper()
	cm := forged(cluster, namespace, name, manifest)
	env.hub.Sign(t, cm)
	made, err := env.hub.CoreV1().ConfigMaps(namespace).Create(t.Context(), cm, metav1.CreateOptions{})
	kit.Must(t, err)
	return made
}

func forged(cluster, namespace, name, manifest string) *corev1.ConfigMap {
	cm := kit.Application(namespace, name, manifest, kit.On(cluster))
	cm.Labels = map[string]string{application.HolderLabel(cluster): "true", application.ClusterLabel: cluster}
	return cm
}

// flood is the number of concurrent writes of a compromised cluster.
const flood = 300

// An attacker controls a cluster and its agent's token. The
// attacker's writes about Applications there, at any rate, harm no other cluster. An Application that moves
// away arrives as its spec says, without the forged values. One of another cluster is repaired and changed
// meanwhile.
func TestHostileClusterHarmsNoOther(t *testing.T) {
	t.Parallel()
	const namespace = "a10"
	newNamespace(t, namespace, planes()...)
	const taken = "taken"
	as := clientOf(t, onHub(t, taken, namespace)) // its agent does not run: the test acts as the agent
	sound := enrol(t, "sound", env.east, []string{namespace}, quickLease()...)
	kit.Must(t, sound.Start(t.Context()))
	moved := newApp(t, taken, namespace, "moved", webManifest, webSchema)
	neighbour := newSettings(t, sound.Name, namespace, "neighbour")
	neighbour.MustSettle(t, sound.Name)

	t.Run("forgery", func(t *testing.T) {
		forgeStatus(t, as, moved, sound.Name)
		moved.Annotate(t, "cluster", sound.Name)
		want := []string{"configmap moved-settings green", "deployment moved web:1", "service moved 80"}
		kit.Eventually(t, func() string { return cmp.Diff(want, ownedBy(t, moved, env.east)) })
		service, err := env.east.CoreV1().Services(namespace).Get(t.Context(), moved.Name, metav1.GetOptions{})
		kit.Must(t, err)
		if service.Spec.ClusterIP == forgedAddress || service.Spec.Ports[0].NodePort == forgedPort {
			t.Errorf("the Service has what was forged: %v", service.Spec)
		}
		// The new cluster's status replaces the forged one.
		kit.Eventually(t, func() string {
			if status := moved.status(t); status.State != application.StateRunning || len(status.Objects) != len(want) {
				return fmt.Sprintf("%s says: %v", moved, status)
			}
			return ""
		})
	})
	t.Run("flood", func(t *testing.T) {
		own := newSettings(t, taken, namespace, "own")
		ctx, stop := context.WithCancel(t.Context())
		flooded := make(chan int64)
		began := time.Now()
		go func() { flooded <- writeFlood(ctx, as, own) }()
		env.east.Change(t, kit.ConfigMaps, namespace, settingsOf(neighbour), drift(0))
		mustHave(t, kit.Timeout, env.east, namespace, settingsOf(neighbour), keyOf(0), "right")
		neighbour.Patch(t, fmt.Sprintf(`{"data": {%q: %q}}`, application.ManifestKey, `{apiVersion: v1, kind: ConfigMap, metadata: {name: neighbour-settings}, data: {key0: changed}}`))
		mustHave(t, kit.Timeout, env.east, namespace, settingsOf(neighbour), keyOf(0), "changed")
		neighbours := time.Since(began)
		made := <-flooded
		stop()
		t.Logf("a repair and a change took %s, during %d writes in %s", neighbours.Round(time.Millisecond), made, time.Since(began).Round(time.Millisecond))
	})
	sound.mustLive(t)
}

// Values that the compromised cluster reports as assigned.
const (
	forgedAddress = "10.0.66.66"
	forgedPort    = 31666
)

// forgeStatus writes, as a cluster's agent, that its Application is on another cluster,
// with false learned values.
func forgeStatus(t *testing.T, as kubernetes.Interface, a app, cluster string) {
	t.Helper()
	learned := []map[string]any{{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": a.Name, "namespace": a.Namespace},
		"spec": map[string]any{"clusterIP": forgedAddress, "ports": []any{map[string]any{"nodePort": forgedPort}}},
	}}
	status := application.Status{
		ObservedSpec: a.Read(t).Spec.Digest(), State: application.StateRunning, Cluster: cluster,
		Conditions: []metav1.Condition{{Type: application.ReadyCondition, Status: metav1.ConditionTrue, Reason: "Forged", LastTransitionTime: metav1.Now()}},
	}
	data := map[string]string{}
	for key, document := range map[string]any{
		application.StatusKey: status, application.LearnedKey: learned, application.LastAppliedKey: learned, application.LastObservedKey: learned,
	} {
		data[key] = string(kit.JSON(t, document))
	}
	patch := kit.JSON(t, map[string]any{"data": data})
	_, err := as.CoreV1().ConfigMaps(a.Namespace).Patch(t.Context(), a.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	kit.Must(t, err)
}

// writeFlood writes the status of an Application repeatedly, several at a time, and
// returns the number of accepted writes.
func writeFlood(ctx context.Context, as kubernetes.Interface, a app) (made int64) {
	const writers = 8
	var accepted atomic.Int64
	var all sync.WaitGroup
	for writer := range writers {
		all.Go(func() {
			for i := range flood / writers {
				patch := fmt.Appendf(nil, `{"data": {"status": "{\"state\": \"FORGED-%d-%d\"}"}}`, writer, i)
				if _, err := as.CoreV1().ConfigMaps(a.Namespace).Patch(ctx, a.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err == nil {
					accepted.Add(1)
				}
			}
		})
	}
	all.Wait()
	return accepted.Load()
}
