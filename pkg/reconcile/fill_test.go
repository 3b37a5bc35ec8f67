package reconcile_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/reconcile"
	"github.com/krake-observer/krake-observer/test/check"
)

// A Secret without values, which the Deployment needs, and something that needs nothing.
const filledObjects = `
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {template: {spec: {containers: [{name: main, image: web}]}}}}
---
{apiVersion: v1, kind: Secret, metadata: {name: vault, labels: {app: web}}, type: kubernetes.io/tls}
`

// source is a Secret with one value.
func source(name, key, value string) map[string]any {
	secret := theirs("v1", "Secret", name, nil)
	secret["data"] = map[string]any{key: encoded(value)}
	return secret
}

// filled returns a world whose Secret has sources, before the first pass.
func filled(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, filledObjects, "")
	w.RequireAccount = true
	w.set(t, application.ValuesFromAnnotation, "vault=values")
	w.objects["Secret values"] = source("values", "password", treasure)
	return w
}

// minute makes the next pass when the Secrets are read again.
func (w *world) minute(t *testing.T) {
	t.Helper()
	w.now = w.now.Add(time.Minute)
	w.mustPass(t)
	w.checkUntold(t)
}

// A Secret is created with the values of its source, before the objects that need it, and no value leaves the target.
func TestASecretIsFilledFromItsSource(t *testing.T) {
	w := filled(t)
	w.checkPass(t, "Create Secret vault", "Create Deployment web")
	w.checkUntold(t)
	w.checkReady(t, application.StateRunning, "Ready", ready)
	check.Equal(t, "password", treasure, w.valueOf(t, "Secret vault", "password"))
	check.Equal(t, "type", any("kubernetes.io/tls"), w.objects["Secret vault"]["type"])
	w.checkSilent(t, 3)
	w.checkSilentRestart(t)
	w.checkUntold(t)
	for _, target := range w.observed {
		check.Equal(t, "an observer watches "+target.ID.String(), false, target.Kind == "Secret")
	}
	deleted(w)
	w.mustPass(t)
	check.Equal(t, "remaining", 1, len(w.objects)) // the source
}

// Within a minute, a changed value is repaired, and told without the value. A key that another client adds stays.
func TestAFilledSecretIsRepaired(t *testing.T) {
	w := filled(t)
	w.mustPass(t)
	w.write(t, "Secret vault", encoded("changed"), "data", "password")
	w.write(t, "Secret vault", encoded("added"), "data", "added")
	w.write(t, "Secret vault", "other", "metadata", "labels", "app")
	w.minute(t)
	w.checkTouches(t, "Patch Secret vault replace /data/password replace /metadata/labels/app")
	check.Equal(t, "password", treasure, w.valueOf(t, "Secret vault", "password"))
	check.Equal(t, "the other's key", "added", w.valueOf(t, "Secret vault", "added"))
	drifts := w.app(t).Status.Drifts
	if len(drifts) != 1 || len(drifts[0].Fields) != 2 || drifts[0].Fields[0].Want != nil || drifts[0].Fields[0].Have != nil {
		t.Errorf("history: %+v", drifts)
	}
	delete(w.objects, "Secret vault")
	w.minute(t)
	w.checkTouches(t, "Create Secret vault")
	check.Equal(t, "drifts", 2, len(w.app(t).Status.Drifts))
}

// A new value of the source is written, and is no drift. Its removal, too, changes nothing but the status.
func TestANewValueOfASourceIsNoDrift(t *testing.T) {
	w := filled(t)
	w.mustPass(t)
	w.objects["Secret values"] = source("values", "password", "new "+treasure)
	w.minute(t)
	w.checkTouches(t, "Patch Secret vault replace /data/password")
	check.Equal(t, "password", "new "+treasure, w.valueOf(t, "Secret vault", "password"))
	check.Equal(t, "drifts", 0, len(w.app(t).Status.Drifts))

	delete(w.objects, "Secret values")
	w.minute(t)
	w.checkTouches(t)
	w.checkReason(t, application.ReconciledCondition, "ValuesNotFound")
	check.Equal(t, "password", "new "+treasure, w.valueOf(t, "Secret vault", "password"))
	w.objects["Secret values"] = source("values", "password", treasure)
	w.minute(t)
	w.checkReady(t, application.StateRunning, "Ready", ready)
}

// Without its source, or the account's right to it, the Secret is not created. The status says what is missing, and the rest is made.
func TestASecretWithoutASource(t *testing.T) {
	w := filled(t)
	delete(w.objects, "Secret values")
	w.checkPass(t, "Create Deployment web")
	w.checkCondition(t, application.ReconciledCondition, "ValuesNotFound", "v1 Secret demo/vault: the source of its values does not exist: v1 Secret demo/values: "+
		"create it in the Application's namespace on the cluster, or correct annotation krake.dev/values-from")
	w.checkSilent(t, 2)

	w.objects["Secret values"] = source("values", "password", treasure)
	const question = "MayRead demo krake-deployer Secret values"
	w.failures[question] = fmt.Errorf("%w: demo/krake-deployer, get secrets", reconcile.ErrUnreadable)
	w.now = w.now.Add(time.Minute)
	w.mustFail(t)
	w.checkTouches(t)
	w.checkReason(t, application.ReconciledCondition, "Forbidden")
	w.checkUntold(t)
	delete(w.failures, question)
	w.checkPass(t, "Create Secret vault")
	w.checkReady(t, application.StateRunning, "Ready", ready)
}

// In mode observe, a difference of a value is told by its field. Another client's Secret is neither read into the status nor written.
func TestAFilledSecretThatIsNotWritten(t *testing.T) {
	w := filled(t)
	w.mustPass(t)
	w.set(t, application.ModeAnnotation, string(application.Observe))
	w.write(t, "Secret vault", encoded("changed"), "data", "password")
	w.checkPass(t)
	w.checkCondition(t, application.ReconciledCondition, "Drifted", "v1 Secret demo/vault: data.password")
	w.checkUntold(t)

	w = filled(t)
	w.objects["Secret vault"] = source("vault", "password", treasure)
	w.checkPass(t, "Create Secret vault", "Create Deployment web")
	w.checkReason(t, application.ReconciledCondition, "AlreadyExists")
	w.checkUntold(t)
}

// The agent reads no values on its own account, and no Secret is its own source.
func TestSourcesThatAreRefused(t *testing.T) {
	w := filled(t)
	w.RequireAccount = false
	w.checkPass(t)
	w.checkReason(t, application.ReconciledCondition, "Refused")
	w.RequireAccount = true
	w.cm.Annotations[application.ValuesFromAnnotation] = "vault=vault" // as a URL might have it
	w.checkPass(t)
	w.checkReason(t, application.ReconciledCondition, "Refused")
}
