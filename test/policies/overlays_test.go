package policies

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	agentcommand "github.com/krake-observer/krake-observer/internal/agent"
	"github.com/krake-observer/krake-observer/internal/compose"
	habitatcommand "github.com/krake-observer/krake-observer/internal/habitat"
	"github.com/krake-observer/krake-observer/internal/hooks"
	"github.com/krake-observer/krake-observer/internal/webhook"
	"github.com/krake-observer/krake-observer/test/kit"
)

// The API server accepts every object of every overlay unchanged and without a warning, and the commands know the
// flags of the overlay, and accept them together.
func TestOverlays(t *testing.T) {
	folder := filepath.Join(server.Dir(), "manifests", "overlays")
	overlays, err := filepath.Glob(filepath.Join(folder, "*"))
	kit.Must(t, err)
	overlays = append(overlays,
		composed(t, "all", "resources: [../overlays/url-sources]", "hooks/target", "hooks/hub", "hooks/agent", "hooks/strict"),
		composed(t, "spoke", "resources: [../overlays/spoke/shared, ../overlays/spoke/agent]", "strict/target", "hooks/target", "hooks/strict", "hooks/spoke"),
		composed(t, "hub", "resources: [../overlays/hub]", "strict/webhook", "url-sources/webhook"),
		composed(t, "strict-habitat", "resources: [../overlays/strict]",
			"habitat/roles", "habitat/policies", "habitat/controller", "habitat/cluster", "habitat/strict"),
		filepath.Join(folder, "habitat", "namespaced"))
	checked, accepted := 0, map[string]bool{} // most overlays have most objects in common
	for _, overlay := range overlays {
		for _, object := range built(t, overlay) {
			checked += checkArguments(t, overlay, object)
			accept(t, accepted, object)
		}
	}
	if checked < 2*len(overlays)-4 { // two overlays hub and two overlays spoke have one
		t.Errorf("%d Deployments in %d overlays", checked, len(overlays))
	}
	for _, kind := range []string{"hooks", "habitat"} {
		for _, object := range built(t, filepath.Join(folder, kind, "namespace")) {
			accept(t, accepted, object)
		}
	}
}

// built returns the objects of a kustomization, as kubectl builds it.
func built(t *testing.T, folder string) (objects []*unstructured.Unstructured) {
	t.Helper()
	found, err := compose.Kustomize(folder)
	kit.Must(t, err)
	for _, object := range found {
		objects = append(objects, &unstructured.Unstructured{Object: mustRead(string(object.Text))})
	}
	return objects
}

// accept fails unless the API server accepts an object, as a dry run, without a warning. It leaves out what was accepted.
func accept(t *testing.T, accepted map[string]bool, object *unstructured.Unstructured) {
	t.Helper()
	text := string(kit.JSON(t, object))
	if accepted[text] {
		return
	}
	accepted[text] = true
	if warned, err := put(t.Context(), object, "default", dry...); err != nil || warned != "" {
		t.Errorf("%s %s: %v, and the server warns %q", object.GetKind(), object.GetName(), err, warned)
	}
}

// checkArguments validates the arguments of a Deployment. It returns 0 for any other object.
func checkArguments(t *testing.T, overlay string, object *unstructured.Unstructured) int {
	t.Helper()
	var deployment appsv1.Deployment
	if object.GetKind() != "Deployment" {
		return 0
	}
	kit.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &deployment))
	if err := validate(deployment.Spec.Template.Spec.Containers[0]); err != nil {
		t.Errorf("%s, %s: %v", overlay, deployment.Name, err)
	}
	return 1
}

// validate returns the error of a container's command about its arguments.
func validate(container corev1.Container) error {
	var options interface {
		AddFlags(flags *pflag.FlagSet)
		Validate() error
	} = &agentcommand.Options{}
	switch container.Name {
	case "webhook":
		options = &webhook.Options{}
	case "habitat":
		options = &habitatcommand.Options{}
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	options.AddFlags(flags)
	if err := flags.Parse(container.Args); err != nil {
		return err
	}
	return options.Validate()
}

// kustomize writes a kustomization with components, and returns its folder.
func kustomize(name, text string, components ...string) (folder string, err error) {
	folder = filepath.Join(server.Dir(), "manifests", "test-"+name)
	text += "\ncomponents: [../components/" + strings.Join(components, ", ../components/") + "]"
	return folder, errors.Join(os.MkdirAll(folder, 0o700), os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600))
}

func composed(t *testing.T, name, text string, components ...string) string {
	t.Helper()
	folder, err := kustomize(name, text, components...)
	kit.Must(t, err)
	return folder
}

// putAll applies what is in a kustomization but the webhook's configuration.
func putAll(t *testing.T, folder, namespace string) {
	t.Helper()
	for _, object := range built(t, folder) {
		if object.GetKind() != "MutatingWebhookConfiguration" {
			_, err := put(context.WithoutCancel(t.Context()), object, namespace)
			kit.Must(t, err)
		}
	}
}

// withHooks installs the hooks in addition to the shared installation, and enables them
// in a new namespace. It reverts its changes when the test ends.
func withHooks(t *testing.T, components ...string) (namespace string) {
	t.Helper()
	const installed = "resources: [../overlays/e2e]"
	putAll(t, composed(t, "hooks", installed, append([]string{"hooks/target", "hooks/hub", "hooks/agent"}, components...)...), "")
	t.Cleanup(func() { putAll(t, composed(t, "e2e", installed, "hooks/target"), "") })
	namespace = newNamespace(t)
	putAll(t, filepath.Join(server.Dir(), "manifests", "overlays", "hooks", "namespace"), namespace)
	return namespace
}

// checkAttempts makes each attempt.
func checkAttempts(t *testing.T, attempts ...kit.Attempt) {
	t.Helper()
	for _, a := range attempts {
		if err := a.Try(); a.Can && err != nil || !a.Can && !apierrors.IsForbidden(err) {
			t.Errorf("%s: the answer is %v", a.What, err)
		}
	}
}

func secretNamed(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// checkSecrets checks whether an agent may write the Secrets of a hook, and read a Secret by its name. Other rights on Secrets it
// does not need.
func checkSecrets(t *testing.T, client kubernetes.Interface, namespace string, mayWrite, mayRead bool) {
	t.Helper()
	in := "/api/v1/namespaces/" + namespace + "/secrets"
	const name = "/app-krake-complete-secret-token"
	attempt := func(request, body string, can bool) kit.Attempt {
		return kit.Attempt{What: request, Try: kit.Send(t, client, request, body), Can: can}
	}
	checkAttempts(t,
		attempt("POST "+in, `{"metadata": {"name": "app-krake-complete-secret-token"}}`, mayWrite),
		attempt("PATCH "+in+name, `{"data": {"a": "Yg=="}}`, mayWrite),
		attempt("DELETE "+in+name, "", mayWrite),
		attempt("GET "+in+"/theirs", "", mayRead),
		attempt("GET "+in, "", false),
		attempt("GET "+in+"?watch=true", "", false),
		attempt("PUT "+in+"/theirs", `{"metadata": {"name": "theirs"}}`, false),
		attempt("DELETE "+in, "", false))
}

// theirSecret creates a Secret that exists before the agent.
func theirSecret(t *testing.T, namespace string) {
	t.Helper()
	_, err := server.CoreV1().Secrets(namespace).Create(t.Context(), secretNamed("theirs"), metav1.CreateOptions{})
	kit.Must(t, err)
}

// In the enabled namespaces the agent makes Secrets, and reads them by their known
// names. In others it does neither. In its own it may do so only with its certificate
// authority.
func TestRightsOfHooks(t *testing.T) {
	namespace, elsewhere := withHooks(t), newNamespace(t)
	await(t, asSubject("local"), "patch", "", "secrets", namespace)
	theirSecret(t, namespace)
	theirSecret(t, elsewhere)
	ctx, local := t.Context(), agent("local").mustClient(t)
	for _, where := range []string{namespace, elsewhere} {
		checkSecrets(t, local, where, where == namespace, where == namespace)
		checkSecrets(t, agent("other").mustClient(t), where, false, false)
	}
	own := local.CoreV1().Secrets("krake-agents")
	again := func() { // as kubectl does, which does not overwrite what the agent has written
		for _, object := range built(t, filepath.Join(server.Dir(), "manifests", "test-hooks")) {
			if object.GetName() == hooks.AuthoritySecret && object.GetKind() == "Secret" {
				server.Apply(t, kit.YAML(t, object.Object))
			}
		}
	}
	again()
	authority, err := own.Get(ctx, hooks.AuthoritySecret, metav1.GetOptions{})
	kit.Must(t, err)
	if len(authority.Data) > 0 {
		t.Errorf("the authority has %d values", len(authority.Data))
	}
	authority.Data = map[string][]byte{"tls.crt": []byte("x")}
	kit.Must(t, kit.ErrorOf(own.Update(ctx, authority, metav1.UpdateOptions{})))
	const in = "/api/v1/namespaces/krake-agents/secrets"
	for _, request := range []string{
		"PATCH " + in + "/" + hooks.AuthoritySecret, "DELETE " + in + "/" + hooks.AuthoritySecret, "POST " + in, "GET " + in + "/x", "GET " + in,
		"GET /api/v1/namespaces/krake-system/secrets/krake-webhook-certificate",
	} {
		checkAttempts(t, kit.Attempt{What: request, Try: kit.Send(t, local, request, "{}")})
	}
	again()
	authority, err = own.Get(ctx, hooks.AuthoritySecret, metav1.GetOptions{})
	kit.Must(t, err)
	if string(authority.Data["tls.crt"]) != "x" {
		t.Errorf("applied once more, the authority has %d values", len(authority.Data))
	}
}

// asSubject is an agent without its group, which has more rights in these tests: only
// the rights bound to its name remain.
func asSubject(cluster string) identity {
	return identity{name: "system:serviceaccount:krake-agents:" + cluster}
}

// In strict mode the Application's account writes the Secrets, and the agent reads them.
// On the hub the agent deletes as itself, where that was granted.
func TestRightsOfHooksInStrictMode(t *testing.T) {
	needsConstrainedImpersonation(t)
	namespace, elsewhere := withHooks(t, "strict/webhook", "strict/target", "hooks/strict"), newNamespace(t)
	theirSecret(t, namespace)
	theirSecret(t, elsewhere)
	for _, where := range []string{namespace, elsewhere} {
		deployer := identity{name: "system:serviceaccount:" + where + ":krake-deployer"}
		kit.Must(t, apply(t.Context(), fmt.Sprintf(`
{apiVersion: v1, kind: ServiceAccount, metadata: {namespace: %[1]s, name: krake-deployer}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {namespace: %[1]s, name: krake-deployer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{kind: ServiceAccount, namespace: %[1]s, name: krake-deployer}]
`, where)))
		await(t, deployer, "patch", "", "secrets", where)
	}
	awaitImpersonation(t, namespace)
	local := agent("local").mustClient(t)
	for _, where := range []string{namespace, elsewhere} {
		checkSecrets(t, agentAs(t, where), where, where == namespace, false)
		checkSecrets(t, local, where, false, where == namespace)
		if got := may(t, asSubject("local"), "delete", "", "configmaps", where); got != (where == namespace) {
			t.Errorf("the agent may delete ConfigMaps in %s: %t", where, got)
		}
	}
}

// needsConstrainedImpersonation skips a test on a server before Kubernetes 1.36. Such a
// server asks for the full right to impersonate, which the roles of strict mode do not
// grant.
func needsConstrainedImpersonation(t *testing.T) {
	t.Helper()
	if version, older := isBefore136(t); older {
		t.Skipf("Kubernetes %s does not know constrained impersonation, which the roles of strict mode need: it came with 1.36", version)
	}
}

// isBefore136 returns the version of the server, and whether it is before Kubernetes 1.36.
func isBefore136(t *testing.T) (version string, older bool) {
	t.Helper()
	info, err := server.Discovery().ServerVersion()
	kit.Must(t, err)
	minor, err := strconv.Atoi(strings.TrimRight(info.Minor, "+"))
	return info.GitVersion, err == nil && minor < 36
}

// agentAs returns the client of an agent that acts as the account of a namespace.
func agentAs(t *testing.T, namespace string) kubernetes.Interface {
	t.Helper()
	as := agent("local")
	as.as = "system:serviceaccount:" + namespace + ":krake-deployer"
	return as.mustClient(t)
}

// awaitImpersonation waits until the aggregated roles of strict mode take effect: the
// agent writes as the account, and not as itself.
func awaitImpersonation(t *testing.T, namespace string) {
	t.Helper()
	account := agentAs(t, namespace)
	kit.EventuallyTrue(t, "the agent does not act as the account", func() bool {
		_, err := account.CoreV1().Secrets(namespace).Create(t.Context(), secretNamed("probe"), metav1.CreateOptions{DryRun: dry})
		return err == nil && !may(t, asSubject("local"), "delete", "apps", "deployments", namespace)
	})
}
