package clusters

import (
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// What an attacker with the token of another cluster's agent can do on the hub, line by line as docs/stolen-token.md has it.
func TestWhatAStolenTokenCanDoOnTheHub(t *testing.T) {
	t.Parallel()
	const namespace = "stolen"
	newNamespace(t, namespace, env.hub)
	client := clientOf(t, onHub(t, "stolen", namespace))
	ctx, in := t.Context(), client.CoreV1().ConfigMaps(namespace)
	own := newSettings(t, "stolen", namespace, "own")
	own.claim(t, client, "stolen")
	other := newSettings(t, "another", namespace, "other")
	for name, annotations := range map[string]map[string]string{
		"theirs": nil,
		"made":   {"krake.dev/owner": namespace + "/web /ConfigMap/" + namespace + "/made", "krake.dev/owner-uid": "5f0c8a4e-0000-4000-8000-000000000000"},
	} {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}, Data: map[string]string{"a": "b"}}
		if annotations != nil {
			cm.Labels = map[string]string{"krake.dev/owned-by": "0123456789abcdef"}
		}
		kit.Must(t, kit.ErrorOf(env.hub.CoreV1().ConfigMaps(namespace).Create(ctx, cm, metav1.CreateOptions{})))
	}
	patch := func(name, body string) func() error {
		return func() error {
			return kit.ErrorOf(in.Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{}))
		}
	}
	try := func(of []attempt, what string) func() error {
		for _, each := range of {
			if each.what == what {
				return func() error { return each.do(t, client, own.NamespacedName) }
			}
		}
		t.Fatalf("there is no attempt %q", what)
		return nil
	}
	const marks = `{"metadata": {"labels": {"krake.dev/owned-by": "x"}, "annotations": {"krake.dev/owner": "stolen/a x"}}}`
	const noMarks = `{"metadata": {"labels": null, "annotations": null}}`
	kit.Attempts(t, "An agent of another cluster, on the hub", []kit.Attempt{
		{What: "lists the ConfigMaps of the namespaces of its cluster", Try: try(reads(), "list"), Can: true},
		{What: "writes the status of an Application of its cluster", Try: patch(own.Name, `{"data": {"status": "{}"}}`), Can: true},
		{What: "creates an Event about any object of its namespaces", Try: try(tellings(), "create an Event about it"), Can: true},
		{What: "changes the spec of an Application of its cluster", Try: patch(own.Name, `{"data": {"spec.manifest": ""}}`)},
		{What: "holds an Application of its cluster back", Try: patch(own.Name, `{"metadata": {"annotations": {"krake.dev/mode": "suspend"}}}`)},
		{What: "creates an Application", Try: func() error {
			return kit.ErrorOf(in.Create(ctx, kit.Application("", "new", "", kit.On("stolen")), metav1.CreateOptions{}))
		}},
		{What: "deletes an Application of its cluster", Try: func() error { return in.Delete(ctx, own.Name, metav1.DeleteOptions{}) }},
		{What: "writes the status of an Application of another cluster", Try: patch(other.Name, `{"data": {"status": "{}"}}`)},
		{What: "moves an Application of another cluster to its own", Try: patch(other.Name, `{"metadata": {"annotations": {"krake.dev/cluster": "stolen"}}}`)},
		{What: "adds our marks to a ConfigMap", Try: patch("theirs", marks)},
		{What: "changes a ConfigMap", Try: patch("theirs", `{"data": {"a": "c"}}`)},
		{What: "changes a ConfigMap that the agent of the hub made", Try: patch("made", `{"data": {"a": "c"}}`)},
		{What: "releases a ConfigMap that the agent of the hub made", Try: patch("made", noMarks)},
		{What: "creates a ConfigMap", Try: func() error {
			return kit.ErrorOf(in.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "new"}}, metav1.CreateOptions{}))
		}},
		{What: "deletes a ConfigMap", Try: func() error { return in.Delete(ctx, "made", metav1.DeleteOptions{}) }},
		{What: "lists the ConfigMaps of all namespaces", Try: try(strays(), "list in all namespaces")},
		{What: "lists Pods", Try: try(strays(), "list Pods")},
		{What: "lists Secrets", Try: try(strays(), "list Secrets")},
		{What: "takes the Lease of another cluster", Try: func() error {
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: application.HubLease("another")}}
			return kit.ErrorOf(client.CoordinationV1().Leases(application.AgentsNamespace).Create(ctx, lease, metav1.CreateOptions{}))
		}},
		{What: "creates a token of another agent", Try: func() error {
			accounts := client.CoreV1().ServiceAccounts(application.AgentsNamespace)
			return kit.ErrorOf(accounts.CreateToken(ctx, "local", &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))
		}},
	})
}
