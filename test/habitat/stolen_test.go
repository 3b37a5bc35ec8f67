package habitat

import (
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/test/kit"
)

// thief is the user agent of requests with a stolen token.
const thief = "thief"

// What an attacker with the token of the Habitat controllers can do, line by line as docs/stolen-token.md has it.
func TestWhatAStolenTokenOfTheHabitatsCanDo(t *testing.T) {
	t.Parallel()
	h, ctx := newHome(t), t.Context()
	h.kubectl(t, "delete", "rolebinding", "krake-habitat-secrets")
	h.run(t, service("web", 1, nil))
	h.secret(t, "theirs", "password")
	kit.Must(t, kit.ErrorOf(h.CoreV1().ConfigMaps(h.namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}}, metav1.CreateOptions{})))
	h.CreateApp(t, kit.Application(h.namespace, "app", "{apiVersion: v1, kind: ConfigMap, metadata: {name: app-settings}}"))
	h.create(t, kit.Pods, object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": "theirs"}, "spec": object{"containers": []any{object{"name": "a", "image": "a"}}}})

	config := rest.AnonymousClientConfig(h.RESTConfig())
	config.BearerToken, config.UserAgent = h.Token(t, "krake-system", "krake-habitat"), thief
	client, err := kubernetes.NewForConfig(config)
	kit.Must(t, err)
	objects, err := dynamic.NewForConfig(config)
	kit.Must(t, err)
	core, in := client.CoreV1(), client.CoreV1().ConfigMaps(h.namespace)
	patch := func(name, body string) func() error {
		return func() error {
			return kit.ErrorOf(in.Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{}))
		}
	}
	const workload = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: evil}, spec: {replicas: 0, serviceName: evil, selector: {matchLabels: {app: evil}}, template: {metadata: {labels: {app: evil}}, spec: {containers: [{name: evil, image: "evil:1"}]}}}}`
	kit.Attempts(t, "krake-habitat", []kit.Attempt{
		{What: "lists the ConfigMaps of all namespaces", Can: true, Try: func() error { return kit.ErrorOf(core.ConfigMaps("").List(ctx, metav1.ListOptions{})) }},
		{What: "lists the Pods of all namespaces", Can: true, Try: func() error { return kit.ErrorOf(core.Pods("").List(ctx, metav1.ListOptions{})) }},
		{What: "creates an Application of a Habitat, and with it Pods", Can: true, Try: func() error {
			cm := kit.Application(h.namespace, "habitat-evil", workload, kit.Annotation("generated-from", "Habitat/evil"))
			return kit.ErrorOf(in.Create(ctx, cm, metav1.CreateOptions{}))
		}},
		{What: "writes the status of a Habitat", Can: true, Try: func() error {
			return kit.ErrorOf(objects.Resource(habitats).Namespace(h.namespace).Patch(ctx, "web", types.MergePatchType, []byte(`{"status": {"peer": "10.0.0.1"}}`), metav1.PatchOptions{}, "status"))
		}},
		{What: "deletes a Pod of a Habitat", Can: true, Try: func() error { return core.Pods(h.namespace).Delete(ctx, "web-0", metav1.DeleteOptions{}) }},
		{What: "creates a Deployment itself", Try: func() error {
			deployment := &unstructured.Unstructured{Object: object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": "evil"}, "spec": object{
				"selector": object{"matchLabels": object{"app": "evil"}}, "template": object{
					"metadata": object{"labels": object{"app": "evil"}}, "spec": object{"containers": []any{object{"name": "evil", "image": "evil:1"}}},
				},
			}}}
			return kit.ErrorOf(objects.Resource(kit.Deployments).Namespace(h.namespace).Create(ctx, deployment, metav1.CreateOptions{}))
		}},
		{What: "deletes another Pod", Try: func() error { return core.Pods(h.namespace).Delete(ctx, "theirs", metav1.DeleteOptions{}) }},
		{What: "changes a ConfigMap of another owner", Try: patch("theirs", `{"data": {"a": "b"}}`)},
		{What: "creates an Application that is of no Habitat", Try: func() error {
			return kit.ErrorOf(in.Create(ctx, kit.Application(h.namespace, "evil", workload), metav1.CreateOptions{}))
		}},
		{What: "changes an Application of a user", Try: patch("app", `{"metadata": {"labels": {"a": "b"}}}`)},
		{What: "deletes an Application", Try: func() error { return in.Delete(ctx, "app", metav1.DeleteOptions{}) }},
		{What: "holds an Application back", Try: patch("habitat-web", `{"metadata": {"annotations": {"krake.dev/mode": "suspend"}}}`)},
		{What: "creates a Habitat", Try: func() error {
			evil := &unstructured.Unstructured{Object: service("evil", 1, nil)}
			return kit.ErrorOf(objects.Resource(habitats).Namespace(h.namespace).Create(ctx, evil, metav1.CreateOptions{}))
		}},
		{What: "reads a Secret", Try: func() error { return kit.ErrorOf(core.Secrets(h.namespace).Get(ctx, "theirs", metav1.GetOptions{})) }},
		{What: "lists Secrets", Try: func() error { return kit.ErrorOf(core.Secrets("").List(ctx, metav1.ListOptions{})) }},
		{What: "changes another definition of a kind", Try: func() error {
			return kit.ErrorOf(objects.Resource(kit.Definitions).Patch(ctx, "others.example.org", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{}))
		}},
		{What: "creates a token of a service account", Try: func() error {
			return kit.ErrorOf(core.ServiceAccounts(h.namespace).CreateToken(ctx, "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))
		}},
	})
}
