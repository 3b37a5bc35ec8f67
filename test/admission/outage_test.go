package admission

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// notCalled is the message for users when the webhook cannot be reached.
const notCalled = `failed calling webhook "application.krake.dev": failed to call webhook: ` +
	`Post "https://krake-webhook.krake-system.svc:`

// killWebhook kills all replicas, which are started again when the test ends. It waits
// until the API server notices: a cached connection may end with another error.
func killWebhook(t *testing.T) {
	t.Helper()
	kit.Must(t, installed.KillWebhook())
	t.Cleanup(func() { kit.Must(t, installed.StartWebhook(context.Background())) })
	eventuallyRefused(t)
}

// eventuallyRefused waits until Applications are refused because no webhook listens.
func eventuallyRefused(t *testing.T) {
	t.Helper()
	kit.Eventually(t, func() string {
		err := create(t, root, newApplication("default", "probe"), dryRun)
		if err != nil && strings.Contains(err.Error(), "connect: connection refused") {
			return ""
		}
		return "no connection is refused, but: " + errorText(err)
	})
}

func errorText(err error) string {
	if err == nil {
		return "accepted"
	}
	return err.Error()
}

// While the webhook is down, the cluster and its Applications
// continue. Applications cannot be changed, but their agent carries them out, and they can be deleted.
func TestClusterLivesWhileTheWebhookIsDown(t *testing.T) {
	kit.Long(t, "rotations of the CA")
	namespace, doomed := newNamespace(t), newNamespace(t)
	mustRun(t, namespace, "web")
	mustRun(t, namespace, "leaving")
	mustRun(t, doomed, "one")
	mustRun(t, doomed, "two")
	killWebhook(t)

	t.Run("1,000 writes of plain ConfigMaps succeed", func(t *testing.T) {
		var writes tally
		writePlain(t, &writes, namespace, 8, 32)
		writes.check(t, "plain writes")
		if writes.len() < 1000 {
			t.Errorf("only %d writes", writes.len())
		}
	})
	t.Run("new namespaces get their kube-root-ca.crt", func(t *testing.T) {
		for range 5 {
			created := hub.NewNamespace(t, "admission")
			kit.EventuallyTrue(t, "no kube-root-ca.crt in "+created, func() bool { return get(t, created, "kube-root-ca.crt") != nil })
		}
	})
	t.Run("no Application is created or changed, and the user reads why", func(t *testing.T) {
		cannotBeWritten(t, namespace)
	})
	t.Run("drift is healed", func(t *testing.T) { mustHeal(t, namespace, "web") })
	// The garbage collector removes a finalizer for that, and does not meet the webhook.
	t.Run("an Application is deleted, and its status says so meanwhile", func(t *testing.T) {
		hub.Change(t, kit.Services, namespace, "leaving", `{"metadata": {"finalizers": ["example.com/hold"]}}`)
		foreground := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}
		kit.Must(t, admin.client(t).CoreV1().ConfigMaps(namespace).Delete(t.Context(), "leaving", foreground))
		eventuallyState(t, application.StateDeleting, namespace, "leaving")
		hub.Change(t, kit.Services, namespace, "leaving", `{"metadata": {"finalizers": null}}`)
		eventuallyGone(t, namespace, "leaving")
	})
	t.Run("a namespace with Applications is deleted", func(t *testing.T) {
		kit.Must(t, root.client(t).CoreV1().Namespaces().Delete(t.Context(), doomed, metav1.DeleteOptions{}))
		hub.EventuallyGone(t, kit.Namespaces, "", doomed)
	})
	t.Run("after the restart Applications are admitted again", func(t *testing.T) {
		kit.Must(t, installed.StartWebhook(t.Context()))
		mustRun(t, namespace, "new")
		kit.Must(t, patch(t, editor, namespace, "web", `{"metadata": {"annotations": {"example.com/note": "x"}}}`))
	})
}

// cannotBeWritten: neither a new Application nor the Application web can be written.
func cannotBeWritten(t *testing.T, namespace string) {
	t.Helper()
	stored := get(t, namespace, "web")
	annotated := `{"metadata": {"annotations": {"` + application.FormatAnnotation + `": "v1"}}}`
	kit.Must(t, createPlain(t, editor, namespace))
	text, err := editor.kubectl(kit.YAML(t, newApplication(namespace, "kubectl")), "create", "-f", "-")
	if err == nil || !strings.HasPrefix(text, `Error from server (InternalError): error when creating "STDIN": Internal error occurred: `+notCalled) ||
		!strings.HasSuffix(text, "connect: connection refused\n") {
		t.Errorf("kubectl says: %s", text)
	}
	for what, err := range map[string]error{
		"create":               create(t, editor, newApplication(namespace, "client")),
		"make one":             patch(t, editor, namespace, "plain", annotated),
		"change the spec":      patch(t, editor, namespace, "web", `{"data": {"spec.manifest": "[]"}}`),
		"change a label":       patch(t, root, namespace, "web", `{"metadata": {"labels": {"a": "b"}}}`),
		"strip its annotation": patch(t, root, namespace, "web", `{"metadata": {"annotations": null}}`),
	} {
		if !apierrors.IsInternalError(err) || !strings.Contains(err.Error(), notCalled) {
			t.Errorf("%s: %s", what, errorText(err))
		}
	}
	if diff := cmp.Diff(stored, get(t, namespace, "web")); diff != "" {
		t.Errorf("the Application was changed (-before +after):\n%s", diff)
	}
}

// A webhook that hangs delays the writes of Applications until
// the timeout of ten seconds, and nothing else.
func TestHangingWebhookDelaysApplicationsOnly(t *testing.T) {
	kit.Long(t, "the webhook hangs until its timeout")
	namespace := newNamespace(t)
	mustRun(t, namespace, "web")
	var usual, beside tally
	writePlain(t, &usual, namespace, 4, 5)
	usual.check(t, "plain writes, the webhook answers")
	kit.Must(t, installed.HangWebhook())
	t.Cleanup(func() { kit.Must(t, installed.ResumeWebhook()) })

	t.Run("plain ConfigMaps and agents do not get there", func(t *testing.T) {
		before := callsOfWebhook(t)
		var hanging tally
		writePlain(t, &hanging, namespace, 4, 10)
		hanging.check(t, "plain writes, the webhook hangs")
		mustHeal(t, namespace, "web")
		if calls := callsOfWebhook(t) - before; calls != 0 {
			t.Errorf("the API server called the webhook %d times", calls)
		}
	})
	t.Run("the write of an Application ends at the timeout", func(t *testing.T) {
		var err error
		begin := time.Now()
		during(t.Context(), func(context.Context) { writePlain(t, &beside, namespace, 2, 5); time.Sleep(4 * pace) }, func() {
			err = create(t, editor, newApplication(namespace, "slow"))
			t.Logf("its creation took %s", time.Since(begin).Round(time.Millisecond))
		})
		beside.check(t, "plain writes, beside one that waits for the webhook")
		if took := time.Since(begin); took < 10*time.Second || took > kit.Timeout {
			t.Errorf("took %s, want the 10 s of the configuration", took)
		}
		if text := errorText(err); !strings.Contains(text, notCalled) || !strings.HasSuffix(text, "?timeout=10s\": context deadline exceeded") {
			t.Errorf("the user reads: %s", text)
		}
		if get(t, namespace, "slow") != nil {
			t.Error("the Application was stored")
		}
	})
	kit.Must(t, installed.ResumeWebhook())
	before := callsOfWebhook(t)
	mustRun(t, namespace, "slow")
	if callsOfWebhook(t) == before {
		t.Error("the API server does not count its calls")
	}
}

// callsOfWebhook returns the API server's count of its calls of the webhook. It
// includes only answered calls.
func callsOfWebhook(t *testing.T) int {
	t.Helper()
	text, err := hub.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	kit.Must(t, err)
	calls := 0
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "apiserver_admission_webhook_admission_duration_seconds_count{") ||
			!strings.Contains(line, `name="application.krake.dev"`) {
			continue
		}
		fields := strings.Fields(line)
		count, err := strconv.Atoi(fields[len(fields)-1])
		kit.Must(t, err)
		calls += count
	}
	return calls
}

// The webhook depends on nothing that it blocks. With its
// configuration in place, and all replicas down, it starts without help.
func TestWebhookStartsWithoutItself(t *testing.T) {
	kit.Long(t, "starts the webhook many times")
	namespace := newNamespace(t)
	t.Run("a cold start", func(t *testing.T) {
		killWebhook(t)
		kit.Must(t, installed.StartWebhook(t.Context()))
		mustRun(t, namespace, "cold")
	})
	t.Run("a cold start without certificates, as after the installation", func(t *testing.T) {
		killWebhook(t)
		hub.Change(t, kit.Secrets, "krake-system", "krake-webhook-certificate", `{"data": null}`)
		kit.Must(t, kit.Send(t, hub, "PATCH /apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/krake-webhook",
			`[{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]`)())
		kit.Must(t, installed.StartWebhook(t.Context()))
		mustRun(t, namespace, "first")
	})
	t.Run("all replicas restart at once, while ConfigMaps and the Secret are written", func(t *testing.T) {
		var plain, secret tally
		during(t.Context(), func(context.Context) {
			writePlain(t, &plain, namespace, 2, 5)
			time.Sleep(4 * pace)
			secret.count(func() error {
				return hub.TryChange(t.Context(), kit.Secrets, "krake-system", "krake-webhook-certificate",
					`{"metadata": {"annotations": {"example.com/at": "`+time.Now().String()+`"}}}`)
			})
		}, func() {
			for range 3 {
				if err := errors.Join(installed.KillWebhook(), installed.StartWebhook(t.Context())); err != nil {
					t.Error(err)
				}
			}
		})
		plain.check(t, "plain writes")
		secret.check(t, "writes of the Secret")
		mustRun(t, namespace, "after")
	})
}
