package reconcile_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	gvr "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/reconcile"
	"github.com/krake-observer/krake-observer/test/check"
)

// treasure is a value that must not leave the agent.
const treasure = "hunter2"

// checkUntold fails if the Application, or a report, has the treasure.
func (w *world) checkUntold(t *testing.T) {
	t.Helper()
	texts := map[string]string{"reports": strings.Join(w.reports, "\n")}
	maps.Copy(texts, w.cm.Data)
	maps.Copy(texts, w.cm.Annotations)
	for _, where := range slices.Sorted(maps.Keys(texts)) {
		if strings.Contains(texts[where], treasure) || strings.Contains(texts[where], encoded(treasure)) {
			t.Errorf("%s: %s", where, texts[where])
		}
	}
}

// secretOf returns a Secret as kubectl apply makes it.
func secretOf(annotations map[string]any) map[string]any {
	all := map[string]any{
		"kubectl.kubernetes.io/last-applied-configuration": `{"stringData": {"password": "` + treasure + `"}}`, "note": treasure, "fixed": treasure,
	}
	maps.Copy(all, annotations)
	secret := theirs("v1", "Secret", "vault", all)
	secret["type"], secret["data"] = "Opaque", map[string]any{"password": encoded(treasure)}
	return secret
}

// Whatever manifest and observer schema ask for, no value of a Secret is learned or published: of its data, of
// its stringData, or of its annotations.
func TestNoValueOfASecretIsPublished(t *testing.T) {
	ours := map[string]any{application.OwnerAnnotation: "demo/app /Secret/demo/vault", application.OwnerUIDAnnotation: "app-uid"}
	for _, c := range []struct{ name, manifest, schema string }{
		{"data is null", `{apiVersion: v1, kind: Secret, metadata: {name: vault}, data: null, stringData: null}`, ""},
		{"data is empty", `{apiVersion: v1, kind: Secret, metadata: {name: vault}, data: {}, stringData: {}}`, ""},
		{"all annotations are null", `{apiVersion: v1, kind: Secret, metadata: {name: vault, annotations: null}}`, ""},
		{"annotations are null", `{apiVersion: v1, kind: Secret, metadata: {name: vault, annotations: {note: null}}}`, ""},
		{"the observer schema has an annotation without a value", `{apiVersion: v1, kind: Secret, metadata: {name: vault}}`,
			`{apiVersion: v1, kind: Secret, metadata: {name: vault, annotations: {note: null}}}`},
		{"and one of another shape", `{apiVersion: v1, kind: Secret, metadata: {name: vault}}`,
			`{apiVersion: v1, kind: Secret, metadata: {name: vault, annotations: {note: {deep: null}}}}`},
		{"an annotation has a value", `{apiVersion: v1, kind: Secret, metadata: {name: vault, annotations: {fixed: mine}}}`, ""},
	} {
		for _, mode := range []application.Mode{application.Enforce, application.Observe} {
			for of, annotations := range map[string]map[string]any{"of another owner": nil, "of ours": ours} {
				t.Run(fmt.Sprint(c.name, ", ", mode, ", ", of), func(t *testing.T) {
					w := newWorld(t, c.manifest, c.schema)
					w.objects["Secret vault"] = secretOf(annotations)
					w.annotate(application.AdoptAnnotation, true)
					w.annotate(application.ModeAnnotation, mode)
					for range 3 {
						w.mustPass(t)
						w.checkUntold(t)
					}
					w.write(t, "Secret vault", treasure+" again", "metadata", "annotations", "note")
					w.write(t, "Secret vault", treasure+" again", "metadata", "annotations", "fixed")
					w.mustPass(t)
					w.checkUntold(t)
				})
			}
		}
	}
}

// An Application that adopts objects shows nothing of an object without its marks, while nothing may be written to
// the object: neither in mode observe, nor if the API server refuses the marks.
func TestNothingOfAForeignObjectIsPublished(t *testing.T) {
	const message = "v1 Service demo/web: the object exists without the marks of this Application, and would be taken over in mode enforce"
	forbid := func(w *world) {
		w.admit = func(_, _ map[string]any) error {
			return apierrors.NewForbidden(gvr.GroupResource{Resource: "services"}, "web", nil)
		}
	}
	observe := func(w *world) { w.annotate(application.ModeAnnotation, application.Observe) }
	for _, c := range []struct {
		name        string
		annotations map[string]any
		set         func(*world)
		reason      string
		message     string
	}{
		{"in mode observe", map[string]any{"note": treasure}, observe, "Drifted", message},
		{"of a former Application of our name, in mode observe",
			map[string]any{application.OwnerAnnotation: "demo/app /Service/demo/web", application.OwnerUIDAnnotation: "former"}, observe, "Drifted", message},
		{"if the marks are refused", map[string]any{"note": treasure}, forbid, "Forbidden", ""},
	} {
		for _, unseen := range []bool{true, false} {
			t.Run(fmt.Sprint(c.name, ", unseen ", unseen), func(t *testing.T) {
				w := newWorld(t, `{apiVersion: v1, kind: Service, metadata: {name: web}}`, `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: null}`)
				w.annotate(application.AdoptAnnotation, true)
				c.set(w)
				w.unseen["Service web"] = unseen
				live := theirs("v1", "Service", "web", c.annotations)
				live["spec"] = map[string]any{"type": "LoadBalancer", "selector": map[string]any{"app": treasure}}
				live["status"] = map[string]any{"loadBalancer": map[string]any{"ingress": []any{map[string]any{"hostname": treasure + ".example.org"}}}}
				w.objects["Service web"] = live
				for range 3 {
					if _, err := w.pass(t); err != nil {
						t.Logf("a pass: %v", err)
					}
					w.checkUntold(t)
				}
				w.checkReason(t, application.ReconciledCondition, c.reason)
				if c.message != "" {
					w.checkCondition(t, application.ReconciledCondition, c.reason, c.message)
					w.checkTouches(t)
				}
				w.restart()
				if _, err := w.pass(t); err != nil {
					t.Logf("after a restart: %v", err)
				}
				w.checkUntold(t)
			})
		}
	}
}

// The agent reads as itself. If the account of an Application may not get an object, the status shows nothing of it,
// and nothing is written, until the account has the right.
func TestNothingIsPublishedThatTheAccountMayNotRead(t *testing.T) {
	w := newWorld(t, `{apiVersion: v1, kind: Service, metadata: {name: web}}`, `{apiVersion: v1, kind: Service, metadata: {name: web}, spec: null}`)
	w.RequireAccount = true
	w.mustReconcile(t)
	const question = "MayRead demo krake-deployer Service web"
	w.failures[question] = fmt.Errorf("%w: demo/krake-deployer, get services", reconcile.ErrUnreadable)
	w.write(t, "Service web", map[string]any{"app": treasure}, "spec", "selector")
	for range 3 {
		w.forget()
		w.mustFail(t)
		w.checkUntold(t)
		w.checkTouches(t)
	}
	w.checkCondition(t, application.ReconciledCondition, "Forbidden", "v1 Service demo/web: the service account may not get the object, "+
		"whose values the status would show: demo/krake-deployer, get services: grant the permission to the agent or to the Application's service account")
	check.Equal(t, "inventory", []string{"Service web"}, w.inventory(t))

	delete(w.failures, question)
	w.mustPass(t)
	w.checkReason(t, application.ReconciledCondition, "Reconciled")
	check.Equal(t, "learned", true, strings.Contains(w.cm.Data[application.LearnedKey], treasure))

	w.failures[question] = reconcile.ErrUnreadable
	deleted(w)
	w.mustPass(t)
	w.checkObjects(t, 0)
}
