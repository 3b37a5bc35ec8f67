package policies

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/test/kit"
)

var policyNames = []string{
	"krake-agents-leases", "krake-agents-namespaces", "krake-configmaps", "krake-configmaps-deletion", "krake-habitat", "krake-habitat-workloads",
	"krake-webhook-configurations",
}

// noExpressionFailed reads all answers of the server from its audit log, because its
// counters do not separate refusals from failures. It also requires some refusals.
func noExpressionFailed() error {
	const refusal = "denied request: "
	refusals, words := 0, []string{refusal, "resulted in error", "cost limit", "cost budget", "failed messageExpression", "compilation"}
	failed, err := kit.WholeAudit(server.Cluster).FindNaming(words, func(r kit.Request) bool {
		has := func(word string) bool { return strings.Contains(r.Status.Message, word) }
		if has(refusal) {
			refusals++
		}
		return slices.ContainsFunc(words[1:], has)
	})
	if err == nil && refusals == 0 {
		err = errors.New("the audit log has no refusal of a policy")
	}
	if len(failed) > 0 {
		err = errors.Join(err, fmt.Errorf("an expression failed: %s", failed[0].Status.Message))
	}
	return err
}

// The API server's type check finds no mistake in the expressions, and each policy
// denies, and fails closed.
func TestPoliciesAreSound(t *testing.T) {
	client := server.AdmissionregistrationV1()
	for _, name := range policyNames {
		var policy *admissionregistrationv1.ValidatingAdmissionPolicy
		kit.EventuallyTrue(t, "the types of "+name+" are not checked", func() bool {
			var err error
			policy, err = client.ValidatingAdmissionPolicies().Get(t.Context(), name, metav1.GetOptions{})
			kit.Must(t, err)
			return policy.Status.TypeChecking != nil
		})
		for _, warning := range policy.Status.TypeChecking.ExpressionWarnings {
			t.Errorf("%s: %s: %s", name, warning.FieldRef, warning.Warning)
		}
		if *policy.Spec.FailurePolicy != "Fail" {
			t.Errorf("%s has failurePolicy %s", name, *policy.Spec.FailurePolicy)
		}
		binding, err := client.ValidatingAdmissionPolicyBindings().Get(t.Context(), name, metav1.GetOptions{})
		kit.Must(t, err)
		if spec := binding.Spec; spec.PolicyName != name || !slices.Equal(spec.ValidationActions, []admissionregistrationv1.ValidationAction{"Deny"}) || (spec.MatchResources != nil) != slices.Contains([]string{"krake-agents-leases", "krake-agents-namespaces"}, name) {
			t.Errorf("binding %s: %+v", name, spec)
		}
	}
}

// Expressions have a cost limit. The largest possible Application is far below it, also
// for its agent; a larger one is refused with a message.
func TestCost(t *testing.T) {
	namespace := newNamespace(t)
	const most = 1000
	aBinary := func(key string) edit { return binary("b."+key, "x") }
	aLabel := func(key string) edit { return label(key, "x") }
	aFinalizer := func(key string) edit {
		return func(cm *corev1.ConfigMap) { cm.Finalizers = append(cm.Finalizers, "example.org/"+key) }
	}
	holder := label("holder.krake.dev/local", "true")
	cm := create(t, administrator, plain(namespace, "app"), annotated, holder, data("spec.manifest", strings.Repeat("x", 900<<10)),
		fill(most/2-1, aData), fill(most/2, aBinary), fill(most-2, aLabel), fill(most-1, aFinalizer))
	cm = mustUpdate(t, agent("local"), cm, label("krake.dev/state", "RUNNING"), addFinalizerOf("local"),
		data("status", "{}"), data("inventory.local", "[]"))
	cm = mustUpdate(t, administrator, cm, data("spec.manifest", "x")) // the agent's entries do not count
	cm = mustUpdate(t, administrator, cm, annotate("krake.dev/cluster", "other"), annotate("krake.dev/force-delete", strings.Repeat("x,", 499)))
	mustUpdate(t, administrator, cm, noData("inventory.local"), dropFinalizerOf("local"),
		annotate("krake.dev/force-delete", "local,"+strings.Repeat("x,", 490)))
	letGo(t, namespace)

	for what, over := range map[string]edit{
		"keys": fill(most+1, aData), "keys in both maps": func(cm *corev1.ConfigMap) {
			fill(most/2, aData)(cm)
			fill(most/2+1, aBinary)(cm)
		},
		"labels": fill(most+1, aLabel), "finalizers": fill(most+1, aFinalizer),
	} {
		cm := with(plain(namespace, "app"), annotated, over)
		if got := verdict(kit.ErrorOf(server.CoreV1().ConfigMaps(namespace).Create(t.Context(), cm, metav1.CreateOptions{}))); got != tooMany {
			t.Errorf("too many %s: %q", what, got)
		}
	}
	// Adoption and release compare as much.
	full := create(t, administrator, plain(namespace, "app"), data("x", strings.Repeat("x", 900<<10)), fill(most, aData),
		fill(most-1, aLabel), fill(most-2, func(key string) edit { return annotate(key, "x") }), fill(most, aFinalizer))
	full = mustUpdate(t, agent("local"), full, marked)
	full = mustUpdate(t, agent("local"), full, letGoOf)
	fuller := mustUpdate(t, administrator, full, fill(3*most, aLabel))
	expect(t, notOurs, kit.ErrorOf(update(t, agent("local"), fuller, marked)))
	letGo(t, namespace)

	plainOne := create(t, administrator, plain(namespace, "app"), fill(2*most, aData))
	expect(t, tooMany, kit.ErrorOf(update(t, administrator, plainOne, annotated)))
}
