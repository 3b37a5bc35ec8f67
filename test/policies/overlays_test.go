package policies

import (
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
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	agentcommand "github.com/krake-observer/krake-observer/internal/agent"
	"github.com/krake-observer/krake-observer/internal/hooks"
	"github.com/krake-observer/krake-observer/internal/webhook"
	"github.com/krake-observer/krake-observer/test/kit"
)

// The API server accepts every overlay unchanged and without a warning.
func TestOverlaysAreAccepted(t *testing.T) {
	kit.Long(t, "each overlay is applied")
	overlays := append(overlays(t),
		composed(t, "spoke", "resources: [../overlays/spoke/shared, ../overlays/spoke/agent]", "strict/target", "hooks/target", "hooks/strict", "hooks/spoke"),
		composed(t, "hub", "resources: [../overlays/hub]", "strict/webhook", "url-sources/webhook"),
		composed(t, "strict-habitat", "resources: [../overlays/strict]",
			"habitat/roles", "habitat/policies", "habitat/controller", "habitat/cluster", "habitat/strict"),
		filepath.Join(server.Dir(), "manifests", "overlays", "habitat", "namespaced"))
	for _, overlay := range overlays {
		mustKubectl(t, "apply", "--dry-run=server", "--validate=strict", "-k", overlay)
	}
	for _, kind := range []string{"hooks", "habitat"} {
		mustKubectl(t, "apply", "--dry-run=server", "--validate=strict", "--namespace", "default",
			"-k", filepath.Join(server.Dir(), "manifests", "overlays", kind, "namespace"))
	}
}

// The commands know the flags of every overlay, and accept them together.
func TestArguments(t *testing.T) {
	overlays, checked := append(overlays(t), filepath.Join(server.Dir(), "manifests", "overlays", "habitat", "namespaced")), 0
	for _, overlay := range overlays {
		checked += checkArguments(t, overlay)
	}
	if checked < 2*len(overlays)-2 { // the overlays hub and spoke have one
		t.Errorf("%d Deployments in %d overlays", checked, len(overlays))
	}
}

// overlays returns the folders of all overlays, and one that has most of their
// components.
func overlays(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(server.Dir(), "manifests", "overlays", "*"))
	kit.Must(t, err)
	return append(found, composed(t, "all",
		"resources: [../overlays/url-sources]", "hooks/target", "hooks/hub", "hooks/agent", "hooks/strict"))
}

// checkArguments validates the arguments of each Deployment of an overlay, and counts the
// Deployments.
func checkArguments(t *testing.T, overlay string) (checked int) {
	t.Helper()
	found := deployments(t, overlay)
	for _, deployment := range found {
		if err := validate(deployment.Spec.Template.Spec.Containers[0]); err != nil {
			t.Errorf("%s, %s: %v", overlay, deployment.Name, err)
		}
	}
	return len(found)
}

// validate returns the error of a container's command about its arguments.
func validate(container corev1.Container) error {
	var options interface {
		AddFlags(flags *pflag.FlagSet)
		Validate() error
	} = &agentcommand.Options{}
	if container.Name == "webhook" {
		options = &webhook.Options{}
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	options.AddFlags(flags)
	if err := flags.Parse(container.Args); err != nil {
		return err
	}
	return options.Validate()
}

// deployments returns the Deployments of an overlay, as kubectl builds it.
func deployments(t *testing.T, overlay string) []appsv1.Deployment {
	t.Helper()
	var found []appsv1.Deployment
	for text := range strings.SplitSeq(server.Kubectl(t, "kustomize", overlay), "\n---\n") {
		var deployment appsv1.Deployment
		kit.Must(t, yaml.Unmarshal([]byte(text), &deployment))
		if deployment.Kind == "Deployment" {
			found = append(found, deployment)
		}
	}
	return found
}

// composed writes a kustomization with components, and returns its folder.
func composed(t *testing.T, name, text string, components ...string) string {
	t.Helper()
	folder := filepath.Join(server.Dir(), "manifests", "test-"+name)
	kit.Must(t, os.MkdirAll(folder, 0o700))
	text += "\ncomponents: [../components/" + strings.Join(components, ", ../components/") + "]"
	kit.Must(t, os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600))
	return folder
}

// mustKubectl runs a command that must neither fail nor warn.
func mustKubectl(t *testing.T, arguments ...string) {
	t.Helper()
	if text := server.Kubectl(t, arguments...); strings.Contains(text, "Warning") {
		t.Fatalf("kubectl %s warns:\n%s", strings.Join(arguments, " "), text)
	}
}

// withHooks installs the hooks in addition to the shared installation, and enables them
// in a new namespace with the shipped command. It reverts its changes when the test
// ends.
func withHooks(t *testing.T, components ...string) (namespace string) {
	t.Helper()
	const noWebhook = `
patches: [{patch: '{"$patch": "delete", "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": {"name": "krake-webhook"}}'}]`
	components = append([]string{"hooks/target", "hooks/hub", "hooks/agent"}, components...)
	mustKubectl(t, "apply", "-k", composed(t, "hooks", "resources: [../overlays/e2e]"+noWebhook, components...))
	t.Cleanup(func() {
		server.Kubectl(t, "apply", "-k", composed(t, "e2e", "resources: [../overlays/e2e]"+noWebhook, "hooks/target"))
	})
	namespace = newNamespace(t)
	mustKubectl(t, "apply", "--namespace", namespace, "-k", filepath.Join(server.Dir(), "manifests", "overlays", "hooks", "namespace"))
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
	mustKubectl(t, "apply", "-k", filepath.Join(server.Dir(), "manifests", "test-hooks")) // does not overwrite the agent's Secret
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
		server.Kubectl(t, "--namespace", where, "create", "serviceaccount", "krake-deployer")
		server.Kubectl(t, "--namespace", where, "create", "rolebinding", "krake-deployer", "--clusterrole=edit",
			"--serviceaccount="+where+":krake-deployer")
		await(t, identity{name: "system:serviceaccount:" + where + ":krake-deployer"}, "patch", "", "secrets", where)
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
