package e2e

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/internal/signature"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

const portEighty = `{apiVersion: v1, kind: Service, metadata: {name: NAME}, spec: {ports: [{port: 80}]}}`

// A user with rights on ConfigMaps alone writes Applications while the webhook is not called: a new one with the labels
// of an admitted one, a copy of an admitted one under another name with its signature, and a change of an admitted
// one. No agent carries them out. When an administrator writes them again, they are admitted.
func TestWhatIsWrittenWithoutTheWebhookIsNotCarriedOut(t *testing.T) {
	namespace := newNamespace(t)
	createApplication(t, namespace, "ours", portEighty, "")
	eventuallyReconciled(t, namespace, "ours")
	mallory := userOf(t, namespace, "configmaps", "*")
	callWebhook(t, namespace, false)
	before := hub.Mark(t)

	forged := kit.Application(namespace, "forged", portEighty)
	forged.Labels = map[string]string{application.HolderLabel("local"): "true", application.ClusterLabel: "local"}
	ours := hub.App(namespace, "ours").Stored(t)
	copied := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "copied", Labels: forged.Labels, Annotations: ours.Annotations},
		Data:       map[string]string{application.ManifestKey: ours.Data[application.ManifestKey]},
	}
	for _, cm := range []*corev1.ConfigMap{forged, copied} {
		_, err := mallory.CoreV1().ConfigMaps(namespace).Create(t.Context(), cm, metav1.CreateOptions{})
		kit.Must(t, err)
	}
	_, err := mallory.CoreV1().ConfigMaps(namespace).Patch(t.Context(), "ours", types.MergePatchType,
		kit.JSON(t, map[string]any{"data": map[string]any{application.ManifestKey: `{apiVersion: v1, kind: Service, metadata: {name: ours}, spec: {ports: [{port: 81}]}}`}}),
		metav1.PatchOptions{})
	kit.Must(t, err)
	for _, name := range []string{"forged", "copied", "ours"} {
		eventuallyCondition(t, namespace, name, "Reconciled", "False", "NotAdmitted")
	}
	if writes := before.Requests(t, kit.By(kit.AgentUser("local")), kit.Of("services")); len(writes) > 0 {
		t.Errorf("the agent asks for %s", kit.List(writes))
	}

	callWebhook(t, namespace, true)
	for _, name := range []string{"forged", "ours"} {
		hub.App(namespace, name).Patch(t, `{"metadata": {"annotations": {"note": "written again"}}}`)
		eventuallyReconciled(t, namespace, name)
	}
	hub.EventuallyField(t, int64(81), kit.Services, namespace, "ours", "spec", "ports", 0, "port")
}

// callWebhook makes the API server call the webhook about a namespace, or not, as an administrator does.
func callWebhook(t *testing.T, namespace string, called bool) {
	t.Helper()
	operation := fmt.Sprintf(`{"op": "add", "path": "/webhooks/0/namespaceSelector/matchExpressions/0/values/3", "value": %q}`, namespace)
	if called {
		operation = `{"op": "remove", "path": "/webhooks/0/namespaceSelector/matchExpressions/0/values/3"}`
	}
	_, err := hub.AdmissionregistrationV1().MutatingWebhookConfigurations().Patch(t.Context(), "krake-webhook", types.JSONPatchType,
		[]byte("["+operation+"]"), metav1.PatchOptions{})
	kit.Must(t, err)
	kit.Eventually(t, func() string {
		made, err := hub.CoreV1().ConfigMaps(namespace).Create(t.Context(), kit.Application(namespace, "probe", portEighty), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil || (made.Data[application.LastAppliedKey] != "") != called {
			return fmt.Sprintf("the webhook is called: want %v (%v)", called, err)
		}
		return ""
	})
}

// An administrator rotates the key by removing it. What was signed before stays valid, and what is written afterwards
// has a signature by the new key.
func TestRotationOfTheSigningKey(t *testing.T) {
	kit.Long(t, "the replicas take a while to notice")
	namespace := newNamespace(t)
	for _, name := range []string{"kept", "written"} {
		createApplication(t, namespace, name, portEighty, "")
		eventuallyReconciled(t, namespace, name)
	}
	former := hub.App(namespace, "written").Stored(t).Annotations[application.SignatureAnnotation]
	hub.Change(t, kit.Secrets, application.SystemNamespace, signature.PrivateSecret, `{"data": null}`)
	kit.EventuallyWithin(t, 3*time.Minute, func() string {
		hub.App(namespace, "written").Annotate(t, "adopt", fmt.Sprint(time.Now().Second()%2 == 0))
		if hub.App(namespace, "written").Stored(t).Annotations[application.SignatureAnnotation][:16] == former[:16] {
			return "the signature is by the former key"
		}
		return ""
	})
	for _, name := range []string{"kept", "written"} {
		hub.Change(t, kit.Services, namespace, name, `{"spec": {"ports": [{"port": 81}]}}`)
		hub.EventuallyField(t, int64(80), kit.Services, namespace, name, "spec", "ports", 0, "port")
		eventuallyReconciled(t, namespace, name)
	}
}
