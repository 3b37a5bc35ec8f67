package admission

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// What a user can do who has all verbs on ConfigMaps, and no other right, line by line as docs/stolen-token.md has it.
func TestWhatAUserWithConfigMapsCanDo(t *testing.T) {
	namespace := newNamespace(t)
	mustRun(t, namespace, "web")
	mustRunLeaving(t, namespace)
	kit.Must(t, create(t, low, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "forged"}, Data: map[string]string{
		application.ManifestKey: kinds()[0].object("", "new", "1"), application.StatusKey: "{}", application.InventoryKey("local"): "[]",
	}}))
	kit.Must(t, patch(t, root, namespace, "web", `{"metadata": {"annotations": {"krake.dev/hold-until": "2999-01-01T00:00:00Z"}}}`))
	config := kinds()[0].object("", "new", "1")
	annotate := func(name, value string) func() error {
		return func() error {
			return patch(t, low, namespace, "web", fmt.Sprintf(`{"metadata": {"annotations": {%q: %q}}}`, "krake.dev/"+name, value))
		}
	}
	edit := func(name, body string) func() error {
		return func() error { return patch(t, low, namespace, name, body) }
	}
	// The webhook undoes what only agents write, and says so. Then the request has changed nothing.
	effective := func(body string) func() error {
		return func() error {
			before := get(t, namespace, "web")
			if err := patch(t, low, namespace, "web", body); err != nil {
				return err
			}
			after := get(t, namespace, "web")
			if before.Data[application.StatusKey] == after.Data[application.StatusKey] && len(after.Finalizers) == len(before.Finalizers) &&
				before.Data[application.InventoryKey("local")] == after.Data[application.InventoryKey("local")] {
				return without("the request has changed nothing")
			}
			return nil
		}
	}
	kit.Attempts(t, "A user with rights on ConfigMaps alone", []kit.Attempt{
		{What: "creates an Application of ConfigMaps", Can: true, Try: func() error { return create(t, low, withManifest(namespace, "settings", config)) }},
		{What: "reads manifest and status of every Application of the namespace", Can: true, Try: func() error {
			return kit.ErrorOf(low.client(t).CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{}))
		}},
		{What: "changes labels of an Application", Can: true, Try: edit("web", `{"metadata": {"labels": {"team": "blue"}}}`)},
		{What: "ends the hold of an Application", Can: true, Try: edit("web", `{"metadata": {"annotations": {"krake.dev/hold-until": null}}}`)},
		{What: "creates an Application of a Service", Try: func() error { return create(t, low, newApplication(namespace, "new")) }},
		{What: "changes the manifest of an Application of a Service", Try: edit("web", manifestPatch(manifestOf("other")))},
		{What: "changes the observer schema of one", Try: edit("web", fmt.Sprintf(`{"data": {%q: %q}}`, application.ObserverSchemaKey,
			`{apiVersion: v1, kind: Service, metadata: {name: web, namespace: null}, spec: {ports: [{port: null}, {observer_schema_list_min_length: 1, observer_schema_list_max_length: 1}]}}`))},
		{What: "has it adopt objects", Try: annotate("adopt", "true")},
		{What: "deletes it", Try: func() error {
			return low.client(t).CoreV1().ConfigMaps(namespace).Delete(t.Context(), "web", metav1.DeleteOptions{})
		}},
		{What: "adds an owner to it", Try: edit("web", absentOwner)},
		{What: "gives its objects up", Try: annotate("force-delete", "far")},
		{What: "holds it back", Try: annotate("mode", "suspend")},
		{What: "moves it to another cluster", Try: annotate("cluster", "far")},
		{What: "has it act as a service account", Try: annotate("service-account", "deployer")},
		{What: "turns on a hook", Try: annotate("hooks", "complete")},
		{What: "makes it immutable", Try: edit("web", `{"immutable": true}`)},
		{What: "makes it immutable while it is deleted", Try: edit("leaving", `{"immutable": true}`)},
		{What: "writes its status", Try: effective(`{"data": {"status": "{}"}}`)},
		{What: "writes its inventory", Try: effective(`{"data": {"inventory.local": null}}`)},
		{What: "removes the agent's finalizer", Try: effective(`{"metadata": {"finalizers": null}}`)},
		{What: "turns it back into a plain ConfigMap", Try: edit("web", `{"metadata": {"annotations": {"krake.dev/application": null}}}`), Refusal: metav1.StatusReasonInvalid},
		{What: "makes an Application of a ConfigMap with forged status", Try: edit("forged", `{"metadata": {"annotations": {"krake.dev/application": "v1"}}}`)},
	})
}
