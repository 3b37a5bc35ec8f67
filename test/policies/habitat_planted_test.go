package policies

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/manifests"
	"github.com/krake-observer/krake-observer/test/kit"
)

// plantedPrefix begins the names of policies with a planted fault, and of the accounts
// that they confine.
const plantedPrefix = "planted-"

// fault is a policy without one clause.
type fault struct {
	what   string
	who    identity
	as     clients
	policy *admissionregistrationv1.ValidatingAdmissionPolicy
}

// Each clause of the policies is needed: without it, some decision differs. All faulty
// policies are in force at once, each for an account of its own.
func TestEachClauseOfHabitatsPoliciesIsNeeded(t *testing.T) {
	kit.Long(t, "each clause is left out once")
	p := newPlace(t)
	for file, trials := range map[string][]trial{
		"configmaps.yaml": trialsOfConfigMaps(p), "workloads.yaml": trialsOfWorkloads(t, p),
	} {
		faults := plantFaults(t, file)
		unseen := faults
		for _, tried := range trials {
			tried.prepared(t, func() {
				unseen = slices.DeleteFunc(slices.Clone(unseen), func(f fault) bool {
					return verdict(tried.try(t.Context(), f.as)) != tried.want
				})
			})
		}
		for _, f := range unseen {
			t.Errorf("%s: %s: nothing is red", file, f.what)
		}
		t.Logf("%s: %d faults are planted", file, len(faults))
		if least := map[string]int{"configmaps.yaml": 50, "workloads.yaml": 5}[file]; len(faults) < least {
			t.Errorf("%s: %d faults are planted, want %d at least", file, len(faults), least)
		}
	}
}

// plantFaults puts faulty policies in force until the test ends.
func plantFaults(t *testing.T, file string) []fault {
	t.Helper()
	text, err := manifests.Files.ReadFile("components/habitat/policies/" + file)
	kit.Must(t, err)
	policyText, _, _ := strings.Cut(string(text), "\n---\n")
	var shipped admissionregistrationv1.ValidatingAdmissionPolicy
	kit.Must(t, yaml.UnmarshalStrict([]byte(policyText), &shipped))
	faults := faultsOf(&shipped)
	for i := range faults {
		f := &faults[i]
		f.who = identity{name: plantedPrefix + shipped.Name + "-" + strconv.Itoa(i), groups: administrator.groups}
		f.policy.ObjectMeta = metav1.ObjectMeta{Name: f.who.name}
		f.policy.Spec.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "is-this-one", Expression: `request.userInfo.username == "` + f.who.name + `"`}}
		f.policy.Spec.Validations = append(f.policy.Spec.Validations, admissionregistrationv1.Validation{
			Expression: `object == null || object.metadata.?name.orValue("") != "probe"`, Message: "it is in force",
		})
		put(t, f.policy)
	}
	for i := range faults {
		f := &faults[i]
		f.as = clientsOf(t, f.who)
		refused := refusedBy(f.who.name, f.probe)
		kit.Must(t, kit.Wait(t.Context(), f.who.name+" is in force", func() (bool, error) { return refused(t.Context()) }))
	}
	return faults
}

// put puts a policy in force until the test ends.
func put(t *testing.T, policy *admissionregistrationv1.ValidatingAdmissionPolicy) {
	t.Helper()
	client := server.AdmissionregistrationV1()
	if _, err := client.ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{}); err != nil {
		t.Fatalf("%v: %s", err, policy.Name)
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: policy.ObjectMeta, Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: policy.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
	}}
	kit.Must(t, kit.ErrorOf(client.ValidatingAdmissionPolicyBindings().Create(t.Context(), binding, metav1.CreateOptions{})))
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := client.ValidatingAdmissionPolicyBindings().Delete(ctx, policy.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		if err := client.ValidatingAdmissionPolicies().Delete(ctx, policy.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// probe makes writes that the policy checks, as a dry run.
func (f *fault) probe(ctx context.Context) error {
	if err := creation(plain("default", "probe"))(ctx, f.as); err != nil {
		return err
	}
	return createStatefulSet(ctx, f.as)
}

// faultsOf returns a policy for each clause, without that clause.
func faultsOf(shipped *admissionregistrationv1.ValidatingAdmissionPolicy) []fault {
	var all []fault
	plant := func(name, expression string, into func(*admissionregistrationv1.ValidatingAdmissionPolicySpec) *string) {
		for what, faulty := range weaker(expression) {
			policy := shipped.DeepCopy()
			*into(&policy.Spec) = faulty
			all = append(all, fault{what: name + ": " + what, policy: policy})
		}
	}
	for i, variable := range shipped.Spec.Variables {
		plant("variable "+variable.Name, variable.Expression, func(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec) *string {
			return &spec.Variables[i].Expression
		})
	}
	for i, validation := range shipped.Spec.Validations {
		at := func(spec *admissionregistrationv1.ValidatingAdmissionPolicySpec) *string {
			return &spec.Validations[i].Expression
		}
		policy := shipped.DeepCopy()
		*at(&policy.Spec) = "true"
		all = append(all, fault{what: fmt.Sprintf("validation %d", i), policy: policy})
		plant(fmt.Sprintf("validation %d", i), validation.Expression, at)
	}
	return all
}

// weaker returns the expression without each one of its clauses, by the omitted clause.
// A clause is an operand of && or ||, at any depth.
func weaker(expression string) map[string]string {
	all := map[string]string{}
	for _, operator := range []struct{ sign, nothing string }{{"||", "false"}, {"&&", "true"}} {
		for _, c := range clauses(expression, operator.sign) {
			clause := expression[c[0]:c[1]]
			all[operator.sign+" "+strings.TrimSpace(clause)] = expression[:c[0]] + " " + operator.nothing + " " + expression[c[1]:]
		}
	}
	return all
}

// clauses returns the positions of the operands of an operator: from an operator, comma
// or bracket to the next one of the same depth.
func clauses(expression, sign string) [][2]int {
	type level struct {
		start int
		found [][2]int
	}
	var all [][2]int
	levels := []level{{}}
	end := func(at int) {
		last := &levels[len(levels)-1]
		if len(last.found) > 0 {
			all = append(all, append(last.found, [2]int{last.start, at})...)
		}
	}
	for i := 0; i < len(expression); i++ {
		last := &levels[len(levels)-1]
		switch rest := expression[i:]; {
		case rest[0] == '"':
			i += 1 + strings.IndexByte(rest[1:], '"')
		case strings.ContainsRune("([{", rune(rest[0])):
			levels = append(levels, level{start: i + 1})
		case strings.ContainsRune(")]}", rune(rest[0])):
			end(i)
			levels = levels[:len(levels)-1]
		case rest[0] == ',', sign == "&&" && strings.HasPrefix(rest, "||"):
			end(i)
			*last = level{start: i + 1}
			if rest[0] == '|' {
				last.start, i = i+2, i+1
			}
		case strings.HasPrefix(rest, sign):
			last.found = append(last.found, [2]int{last.start, i})
			last.start, i = i+2, i+1
		}
	}
	end(len(expression))
	return all
}

// weaker finds the clauses of an expression.
func TestWeaker(t *testing.T) {
	const expression = `a.exists(o, o == "x && y" && o != null) || b && c(d || e, f)`
	want := []string{
		`a.exists(o, o == "x && y" &&  true ) || b && c(d || e, f)`,
		`a.exists(o, true  && o != null) || b && c(d || e, f)`,
		` false || b && c(d || e, f)`,
	}
	got := weaker(expression)
	for _, expected := range want {
		found := false
		for _, w := range got {
			found = found || strings.ReplaceAll(w, " ", "") == strings.ReplaceAll(expected, " ", "")
		}
		if !found {
			t.Errorf("there is no %s in %v", expected, got)
		}
	}
	if len(got) != 8 {
		t.Errorf("%d expressions: %v", len(got), got)
	}
}
