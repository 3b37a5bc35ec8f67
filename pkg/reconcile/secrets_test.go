package reconcile_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/test/check"
)

// A workload, the Service that receives the shutdown request, and another object.
const hookedObjects = `
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 1,
  template: {spec: {containers: [{name: main, image: web}]}}}}
---
{apiVersion: v1, kind: Service, metadata: {name: shutdown}, spec: {selector: {app: web}, ports: [{port: 8080}]}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: config}, data: {a: "1"}}
`

// The labels of the Secrets of the shutdown hook in this world.
const (
	tokenSecret = "Secret app-krake-shutdown-secret-token" //nolint:gosec // a name
	certsSecret = "Secret app-krake-shutdown-secret-certs" //nolint:gosec // a name
)

// canary is part of all values of Secrets, and of nothing else.
const canary = "canary"

// maker makes values that identify themselves. The private ones contain the canary.
type maker struct {
	made int
	// renews: no former certificate is valid.
	renews bool
	fails  error
}

func (m *maker) Data(_ types.NamespacedName, uid types.UID, hook application.Hook, certs bool, former map[string][]byte) (map[string][]byte, error) {
	if m.fails != nil {
		return nil, m.fails
	}
	keep := func(key string) []byte {
		if value := former[key]; strings.HasPrefix(string(value), canary) && (!certs || !m.renews) {
			return value
		}
		m.made++
		return fmt.Appendf(nil, "%s %s of %s, number %d", canary, key, uid, m.made)
	}
	if certs {
		return map[string][]byte{
			application.CABundleKey: []byte("the bundle"), application.CertificateKey: keep(application.CertificateKey), application.PrivateKeyKey: keep(application.PrivateKeyKey),
		}, nil
	}
	return map[string][]byte{application.TokenKey(hook): keep(application.TokenKey(hook)), application.URLKey(hook): []byte("https://hooks")}, nil
}

// hooked returns an Application with hooks that no agent has seen yet.
func hooked(t *testing.T, hooks string) *world {
	t.Helper()
	w := newWorld(t, hookedObjects, "")
	w.Secrets = &maker{}
	w.set(t, application.HooksAnnotation, hooks)
	return w
}

// hookedRunning returns an Application with hooks that is reconciled.
func hookedRunning(t *testing.T, hooks string) *world {
	t.Helper()
	w := hooked(t, hooks)
	w.mustPass(t)
	w.checkReady(t, application.StateRunning, "Ready", ready)
	w.forget()
	return w
}

// set sets an annotation as a user does, or removes it if the value is empty. Admission
// completes the change.
func (w *world) set(t *testing.T, name, value string) {
	t.Helper()
	w.edit(t, func(cm *corev1.ConfigMap) {
		if cm.Annotations[name] = value; value == "" {
			delete(cm.Annotations, name)
		}
	})
}

// passWith sets an annotation as a user does, and makes a pass that does not fail.
func (w *world) passWith(t *testing.T, name, value string) {
	t.Helper()
	w.set(t, name, value)
	w.mustPass(t)
}

func (w *world) edit(t *testing.T, change func(cm *corev1.ConfigMap)) {
	t.Helper()
	stored := w.cm.DeepCopy()
	change(w.cm)
	check.Must(t, mutate.PrepareForUpdate(t.Context().Err, w.cm, stored, true).Refusals.ToAggregate())
	w.cm.ResourceVersion = w.next()
}

// mustPass makes a pass that does not fail, and returns when the next one is due.
func (w *world) mustPass(t *testing.T) time.Duration {
	t.Helper()
	w.forget()
	result, err := w.reconcile(t)
	check.Must(t, err)
	return result.RequeueAfter
}

// checkSilent checks that this many passes, a second apart, write nothing.
func (w *world) checkSilent(t *testing.T, passes int) {
	t.Helper()
	step := w.step
	w.step = time.Second
	defer func() { w.step = step }()
	for range passes {
		w.mustPass(t)
		check.Equal(t, "writes while there is nothing to do", []string(nil), w.writes())
	}
}

// valueOf returns a value of a live Secret.
func (w *world) valueOf(t *testing.T, secret, key string) string {
	t.Helper()
	data, _ := w.objects[secret]["data"].(map[string]any)
	text, _ := data[key].(string)
	return decoded(t, text)
}

func (w *world) token(t *testing.T) string {
	t.Helper()
	return w.valueOf(t, tokenSecret, application.TokenKey(application.Shutdown))
}

func (w *world) checkToken(t *testing.T, number int) {
	t.Helper()
	token := w.token(t)
	if want := fmt.Sprintf("number %d", number); !strings.HasSuffix(token, want) {
		t.Errorf("the token is %q, want %s", token, want)
	}
	check.Equal(t, "digest of the token", application.DigestOf([]byte(token)), w.app(t).Hooks.Tokens[application.Shutdown])
}

// checkNoCanary checks that the values of Secrets appear only on the target.
func (w *world) checkNoCanary(t *testing.T, said ...string) {
	t.Helper()
	said = append(said, slices.Collect(maps.Values(w.cm.Data))...)
	said = append(said, w.reports...)
	said = append(said, w.calls...)
	checkLacks(t, canary, said...)
}

// The Secrets are created after the hub has recorded them, and before the workloads that wait
// for them. Their content is reported as digests only.
func TestHookSecrets(t *testing.T) {
	w := hooked(t, "shutdown")
	w.checkAfter(t, w.step, time.Minute)
	w.checkCalls(t,
		"Observe",
		"Write inventory.local status krake.dev/state finalizers",
		"Create "+certsSecret, "Create "+tokenSecret,
		"Create ConfigMap config", "Create Service shutdown", "Create Deployment web",
		"Write inventory.local status status.last_applied_manifest status.last_observed_manifest status.learned krake.dev/state",
		"Start",
	)
	w.checkReports(t,
		"Created v1 Secret demo/app-krake-shutdown-secret-certs", "Created v1 Secret demo/app-krake-shutdown-secret-token",
		"Created v1 ConfigMap demo/config", "Created v1 Service demo/shutdown", "Created apps/v1 Deployment demo/web")
	w.checkToken(t, 3)
	digest := application.DigestOf([]byte(w.token(t)))
	for _, key := range []string{application.LastAppliedKey, application.LastObservedKey, application.LearnedKey, application.InventoryKey(application.LocalCluster)} {
		check.Equal(t, key+" has the digest of the token", true, strings.Contains(w.cm.Data[key], digest))
	}
	w.checkNoCanary(t)
	w.checkSilent(t, 3)
}

// The Secrets are read once a minute, however many passes run. Correct Secrets are not
// written, not even by a new agent.
func TestHookSecretsAreReadOnceInAMinute(t *testing.T) {
	w := hookedRunning(t, "complete,shutdown")
	reads := 0
	w.step = 10 * time.Second
	for range 18 {
		w.mustPass(t)
		reads += strings.Count(strings.Join(w.calls, "\n"), "Read Secret")
	}
	check.Equal(t, "reads in three minutes", 3*4, reads)
	w.checkSilentRestart(t)
	w.checkToken(t, 6)
}

// After any change by another client, a Secret gets its former content back. Unobserved fields
// stay.
func TestAlteredHookSecret(t *testing.T) {
	const token = "/data/krake_shutdown_token" //nolint:gosec // a path
	cases := []struct {
		name    string
		secret  string
		alter   func(live map[string]any)
		touches []string
	}{
		{"another token", tokenSecret, writes(encoded("theirs"), "data", "krake_shutdown_token"),
			[]string{"Patch " + tokenSecret + " replace " + token}},
		{"no token", tokenSecret, removes("data", "krake_shutdown_token"), []string{"Patch " + tokenSecret + " add " + token}},
		{"another key for the certificate", certsSecret, writes(encoded("theirs"), "data", "key.pem"),
			[]string{"Patch " + certsSecret + " replace /data/key.pem"}},
		{"without our label", tokenSecret, removes("metadata", "labels"), []string{"Patch " + tokenSecret + " add /metadata/labels"}},
		{"without the marks that prove it", tokenSecret, removes("metadata", "annotations"),
			[]string{"Patch " + tokenSecret + " add /metadata/annotations"}},
		{"a key more, a label more", tokenSecret, func(live map[string]any) {
			writes(encoded("theirs"), "data", "extra")(live)
			writes("theirs", "metadata", "labels", "theirs")(live)
		}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := hookedRunning(t, "shutdown")
			w.change(t, c.secret, func(live *unstructured.Unstructured) { c.alter(live.Object) })
			w.step = time.Minute
			w.checkPass(t, c.touches...)
			for _, report := range w.reports {
				if !strings.HasPrefix(report, "DriftReverted v1 Secret") {
					t.Errorf("reported: %s", report)
				}
			}
			check.Equal(t, "drifts in the history", len(c.touches), len(w.app(t).Status.Drifts))
			w.checkToken(t, 3)
			w.checkNoCanary(t)
			w.checkPass(t)
		})
	}
}

// The same process restores the values that it made. Another process keeps what matches the
// record, and must create the others again.
func TestDeletedHookSecret(t *testing.T) {
	cases := []struct {
		name    string
		during  func(w *world)
		restart bool
		token   int
		report  string
	}{
		{"while the agent runs", func(w *world) { delete(w.objects, tokenSecret) }, false, 3, "Recreated v1 Secret demo/app-krake-shutdown-secret-token"},
		{"while no agent ran", func(w *world) { delete(w.objects, tokenSecret) }, true, 4, "Recreated v1 Secret demo/app-krake-shutdown-secret-token"},
		{"changed while no agent ran", func(w *world) {
			w.objects[tokenSecret]["data"].(map[string]any)["krake_shutdown_token"] = encoded(canary + ", theirs")
		}, true, 4, "DriftReverted v1 Secret demo/app-krake-shutdown-secret-token: data.krake_shutdown_token, changed by "},
		{"left alone", func(*world) {}, true, 3, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := hookedRunning(t, "shutdown")
			c.during(w)
			if c.restart {
				w.restart()
			}
			w.step = time.Minute
			w.mustPass(t)
			w.checkToken(t, c.token)
			if got := strings.Join(w.reports, ""); !strings.HasPrefix(got, c.report) || c.report == "" && got != "" {
				t.Errorf("reported %q, want %q", got, c.report)
			}
			w.checkNoCanary(t)
			w.checkSilentRestart(t)
		})
	}
}

// If the agent dies between creation and record, the next one uses the same token: the Pods
// may have read it.
func TestTokenThatWasNotRecorded(t *testing.T) {
	w := hooked(t, "shutdown")
	w.failures["Create ConfigMap config"] = errors.New("the end")
	lost := w.cm.DeepCopy()
	w.mustFail(t)
	w.failures = map[string]error{}
	lost.ResourceVersion = w.next()
	w.cm = lost
	w.restart()
	w.mustPass(t)
	w.checkToken(t, 3)
	checkLacks(t, "Secret", w.touches()...)
}

// The Application has not arrived on this cluster yet, and the first write of the status
// fails. The digest of the token is stored with the next write, even if the Secrets are not
// read again. Without it, an Application that shuts down meanwhile could not prove its
// shutdown.
func TestTokenThatWasNotStoredOnArrival(t *testing.T) {
	w := hooked(t, "shutdown")
	w.travel(t, "edge")
	w.visit("edge", map[string]map[string]any{})
	w.failures["Write inventory.edge status status.last_applied_manifest status.last_observed_manifest status.learned krake.dev/state"] =
		apierrors.NewConflict(resource, "app", errors.New("somebody was faster"))
	w.mustTry(t)
	w.failures = map[string]error{}
	w.step = time.Second
	w.mustPass(t)
	w.checkReady(t, application.StateRunning, "Ready", ready)
	w.checkToken(t, 3)
}

// A foreign Secret, or one of another Application, stays unchanged. The condition reports the
// conflict, and the Secret is not read in every pass.
func TestForeignHookSecret(t *testing.T) {
	other := map[string]any{
		application.OwnerAnnotation: "demo/other /Secret/demo/app-krake-shutdown-secret-token", application.OwnerUIDAnnotation: "other-uid",
	}
	for reason, annotations := range map[string]map[string]any{"AlreadyExists": {}, "OwnedByAnotherApplication": other} {
		w := hooked(t, "shutdown")
		w.objects[tokenSecret] = theirs("v1", "Secret", "app-krake-shutdown-secret-token", annotations)
		w.objects[tokenSecret]["data"] = map[string]any{"krake_shutdown_token": encoded("theirs")}
		if after := w.mustPass(t); after > time.Minute || after == 0 {
			t.Errorf("it looks again after %s", after)
		}
		w.checkReason(t, application.ReadyCondition, reason)
		w.checkReason(t, application.ConflictedCondition, reason)
		check.Equal(t, "token", "theirs", w.token(t))
		check.Equal(t, "recorded tokens", 0, len(w.app(t).Hooks.Tokens))
		w.checkSilent(t, 3)
		checkLacks(t, "Read Secret", w.calls...)
		w.checkReason(t, application.ReadyCondition, reason)
		deleted(w)
		w.passWith(t, application.HooksAnnotation, "")
		check.Equal(t, "token", "theirs", w.token(t))
		w.checkObjects(t, 1)
	}
}

// A certificate that is renewed in time is no drift.
func TestRenewedCertificate(t *testing.T) {
	w := hookedRunning(t, "shutdown")
	w.Secrets.(*maker).renews = true
	w.step = time.Minute
	w.checkPass(t, "Patch "+certsSecret+" replace /data/cert.pem replace /data/key.pem")
	w.checkReports(t, "Configured v1 Secret demo/app-krake-shutdown-secret-certs: data[\"cert.pem\"], data[\"key.pem\"]")
	check.Empty(t, "drifts", w.app(t).Status.Drifts)
	w.checkToken(t, 3)
}

// Without a hook there are no Secrets. A hook that is set again gets another token.
func TestHooksThatAreTakenOff(t *testing.T) {
	w := hookedRunning(t, "complete,shutdown")
	w.checkToken(t, 6)
	w.passWith(t, application.HooksAnnotation, "complete")
	w.checkObjects(t, 5) // the Secrets of the other hook are among them
	if tokens := w.app(t).Hooks.Tokens; len(tokens) != 1 || tokens[application.Complete] == "" {
		t.Errorf("tokens: %v", tokens)
	}
	w.passWith(t, application.HooksAnnotation, "complete,shutdown")
	w.checkToken(t, 9)
	w.passWith(t, application.HooksAnnotation, "")
	w.checkObjects(t, 3)
	check.Equal(t, "recorded tokens", 0, len(w.app(t).Hooks.Tokens))
	w.checkQuiet(t)
}

// The Secrets are deleted with the Application, after its workloads.
func TestHookSecretsAreDeleted(t *testing.T) {
	w := hookedRunning(t, "complete")
	deleted(w)
	w.mustPass(t)
	w.checkTouches(t, "Delete Deployment web", "Delete Service shutdown",
		"Delete Secret app-krake-complete-secret-token", "Delete Secret app-krake-complete-secret-certs", "Delete ConfigMap config")
	w.checkHeld(t, false)
}

// In mode observe no Secret is created, and the condition reports differences. A suspended
// Application's Secrets are not read.
func TestHookSecretsInEveryMode(t *testing.T) {
	w := hooked(t, "shutdown")
	w.set(t, application.ModeAnnotation, "observe")
	w.checkPass(t)
	w.checkReason(t, application.ReconciledCondition, "Drifted")
	w.passWith(t, application.ModeAnnotation, "enforce")
	w.checkReady(t, application.StateRunning, "Ready", ready)

	w.passWith(t, application.ModeAnnotation, "observe")
	w.checkReady(t, application.StateRunning, "Ready", ready)
	w.somebody(t, "somebody", tokenSecret, encoded("theirs"), "data", "krake_shutdown_token")
	w.step = time.Minute
	w.checkPass(t)
	w.checkCondition(t, application.DriftedCondition, "ObserveMode", "v1 Secret demo/app-krake-shutdown-secret-token: data.krake_shutdown_token")
	w.passWith(t, application.ModeAnnotation, "suspend")
	w.checkCalls(t, "Stop", "Write status")
	w.passWith(t, application.ModeAnnotation, "enforce")
	w.checkToken(t, 3)
	w.checkReady(t, application.StateRunning, "Ready", ready)
}

// A held Secret is not restored until the hold ends, and then at once.
func TestHeldHookSecret(t *testing.T) {
	w := hookedRunning(t, "shutdown")
	w.set(t, application.HoldUntilAnnotation, w.now.Add(90*time.Second).Format(time.RFC3339))
	w.change(t, tokenSecret, func(live *unstructured.Unstructured) {
		live.Object["data"].(map[string]any)["krake_shutdown_token"] = encoded("theirs")
		live.SetLabels(nil)
	})
	w.step = 80 * time.Second
	after := w.mustPass(t)
	w.checkTouches(t, "Patch "+tokenSecret+" add /metadata/labels")
	w.checkReason(t, application.DriftedCondition, "Held")
	if after > 10*time.Second || w.token(t) != "theirs" {
		t.Errorf("the token is %q, and looked at after %s", w.token(t), after)
	}
	w.step = after
	w.mustPass(t)
	w.checkToken(t, 3)
	w.checkReady(t, application.StateRunning, "Ready", ready)
	w.checkSilent(t, 2)
}

// While the hub does not answer, it cannot record a Secret, so none is created.
func TestHookSecretsWaitForTheHub(t *testing.T) {
	w := hooked(t, "shutdown")
	w.hubFails = errSilent
	for range 3 {
		w.forget()
		w.mustTry(t)
		w.checkTouches(t)
	}
	w.hubFails = nil
	w.step = time.Minute
	w.mustPass(t)
	w.checkToken(t, 3)
}

// A failure of a Secret is reported without its values, and tried again. The workloads wait
// only if the target is silent.
func TestHookSecretThatFails(t *testing.T) {
	cases := []struct {
		name    string
		err     error
		reason  string
		touches int
	}{
		{"it is refused", apierrors.NewForbidden(resource, "x", errors.New(canary)), "Forbidden", 5},
		{"the target falls silent", errSilent, "TargetUnreachable", 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := hooked(t, "shutdown")
			w.failures["Create "+certsSecret] = c.err
			result, err := w.reconcile(t)
			if err == nil && result == (ctrl.Result{}) {
				t.Error("it is not tried again")
			}
			w.checkReason(t, application.ReadyCondition, c.reason)
			w.checkNoCanary(t, fmt.Sprintf("%v %+v", err, err))
			check.Equal(t, "writes to the target", c.touches, len(w.touches()))
			clear(w.failures)
			w.step = time.Minute
			w.mustPass(t)
			w.checkReady(t, application.StateRunning, "Ready", ready)
		})
	}
	w := hooked(t, "shutdown")
	w.Secrets.(*maker).fails = errors.New("no CA")
	_, err := w.reconcile(t)
	check.Fails(t, "without a CA", err, "no CA")
	w.checkReason(t, application.ReadyCondition, "Error")
}

// The Secrets are written with the same account as all other objects.
func TestHookSecretsOfAnAccount(t *testing.T) {
	w := hooked(t, "shutdown")
	w.RequireAccount = true
	w.mustPass(t)
	at := slices.Index(w.calls, "As demo krake-deployer")
	if created := slices.Index(w.calls, "Create "+certsSecret); at < 0 || created < at {
		t.Errorf("calls: %v", w.calls)
	}
}

// An agent without hooks refuses an Application that asks for one, and does not touch it.
func TestHooksOfAnAgentWithout(t *testing.T) {
	w := hooked(t, "shutdown")
	w.Secrets = nil
	w.checkPass(t)
	w.checkReady(t, application.StateFailed, "Refused",
		"refused: annotation krake.dev/hooks: this agent has no endpoint for hooks: leave it out, or have an administrator install the hooks (overlays/hooks)")
	w.checkReason(t, application.StalledCondition, "Refused")
}

// After the restore of a hub, the Application has another UID. The Secrets and the token are
// still its own.
func TestHookSecretsOfARestoredHub(t *testing.T) {
	w := hookedRunning(t, "shutdown")
	w.cm.UID = "restored-uid"
	w.cm.ResourceVersion = w.next()
	w.restart()
	for name := range w.objects {
		w.stale[name] = true
	}
	w.mustPass(t)
	w.checkToken(t, 3)
	owner := (&unstructured.Unstructured{Object: w.objects[tokenSecret]}).GetAnnotations()[application.OwnerUIDAnnotation]
	check.Equal(t, "UID of its owner", "restored-uid", owner)
}

// All namespaces get the same token, even if one Secret is created later.
func TestOneTokenForAllNamespaces(t *testing.T) {
	const elsewhere = "Secret other/app-krake-shutdown-secret-token"
	w := hooked(t, "shutdown")
	w.Scope = mutate.ClusterScope
	w.edit(t, func(cm *corev1.ConfigMap) {
		cm.Data[application.ManifestKey] += "---\n" +
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: other}, spec: {template: {spec: {containers: [{name: main}]}}}}"
	})
	w.step = time.Minute
	for range 2 {
		w.mustPass(t)
		w.checkToken(t, 3)
		check.Equal(t, "token elsewhere", w.token(t), w.valueOf(t, elsewhere, application.TokenKey(application.Shutdown)))
		delete(w.objects, elsewhere)
		w.restart()
	}
}

func encoded(value string) string { return base64.StdEncoding.EncodeToString([]byte(value)) }

func decoded(t *testing.T, text string) string {
	t.Helper()
	value, err := base64.StdEncoding.DecodeString(text)
	check.Must(t, err)
	return string(value)
}
