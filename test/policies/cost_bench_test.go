package policies

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/test/kit"
)

// wide is a policy for every kind with a condition on the user, which ADR 054 turns down.
const wide = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: test-wide}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: ["*"], apiVersions: ["*"], operations: [CREATE, UPDATE, DELETE], resources: ["*"]}]
  matchConditions:
  - {name: is-an-agent, expression: 'request.userInfo.?username.orValue("").startsWith("system:serviceaccount:krake-agents:")'}
  validations: [{expression: 'oldObject != null && oldObject.metadata.?annotations[?"krake.dev/owner"].orValue("") != ""'}]
`

// BenchmarkWritesOfOthers measures what policies and webhook configuration cost the PATCHes of other
// clients: with none, with each, with both, and with the policies and the wide one, in turns. It reports
// the API server's processor time for a write, and the median of the clients' waits, as ratios to none:
// the median of the rounds, and the extremes.
func BenchmarkWritesOfOthers(b *testing.B) {
	const rounds, writes = 9, 500
	innocents := newInnocents(b)
	all := bindingsOf(b)
	states := []struct {
		name     string
		bindings []admissionregistrationv1.ValidatingAdmissionPolicyBinding
		webhook  bool
	}{
		{"none", nil, false}, {"webhook", nil, true}, {"policies", all, false}, {"webhook and policies", all, true},
		{"policies and wide", append(slices.Clone(all), wideBinding(b)), false},
	}
	ratios := map[string][]float64{}
	for range rounds {
		base := map[string]cost{}
		for _, state := range states {
			bindOnly(b, state.bindings)
			if state.webhook {
				configureWebhook(b)
			}
			for _, kind := range slices.Sorted(maps.Keys(innocents)) {
				measured := measure(b, innocents[kind], writes)
				if state.name == "none" {
					base[kind] = measured
					continue
				}
				about := kind + ", " + state.name
				ratios[about+": processor"] = append(ratios[about+": processor"], float64(measured.cpu)/float64(base[kind].cpu))
				ratios[about+": median wait"] = append(ratios[about+": median wait"], float64(measured.wait)/float64(base[kind].wait))
			}
			if state.webhook {
				forgetWebhook(b)
			}
		}
	}
	bindOnly(b, all)
	var table strings.Builder
	for _, about := range slices.Sorted(maps.Keys(ratios)) {
		found := ratios[about]
		slices.Sort(found)
		fmt.Fprintf(&table, "\n%-50s %.3f (%.3f to %.3f)", about, found[rounds/2], found[0], found[rounds-1])
	}
	b.Log(table.String())
}

// newInnocents returns a changing write for each kind, of a user who is no agent.
func newInnocents(b *testing.B) map[string]func(i int) error {
	b.Helper()
	ctx, namespace := b.Context(), kit.UniqueName("cost")
	server.CreateNamespace(b, namespace)
	innocents := map[string]func(i int) error{}
	for _, kind := range []string{"Deployment", "Pod", "Service"} {
		s := samples()[kind]
		client := dynamicClient(b, administrator).Resource(s.resource).Namespace(namespace)
		kit.Must(b, kit.ErrorOf(client.Create(ctx, s.object(b, "innocent"), metav1.CreateOptions{})))
		innocents[kind] = func(i int) error {
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"note":"%d"}}}`, i)
			return kit.ErrorOf(client.Patch(ctx, "innocent", types.MergePatchType, patch, metav1.PatchOptions{}))
		}
	}
	configMaps, leases := server.CoreV1().ConfigMaps(namespace), server.CoordinationV1().Leases(namespace)
	kit.Must(b, kit.ErrorOf(configMaps.Create(ctx, plain(namespace, "innocent"), metav1.CreateOptions{})))
	kit.Must(b, kit.ErrorOf(leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "innocent"}}, metav1.CreateOptions{})))
	innocents["ConfigMap"] = func(i int) error {
		return kit.ErrorOf(configMaps.Patch(ctx, "innocent", types.MergePatchType, fmt.Appendf(nil, `{"data":{"note":"%d"}}`, i), metav1.PatchOptions{}))
	}
	innocents["Lease"] = func(i int) error {
		return kit.ErrorOf(leases.Patch(ctx, "innocent", types.MergePatchType, fmt.Appendf(nil, `{"spec":{"leaseTransitions":%d}}`, i), metav1.PatchOptions{}))
	}
	return innocents
}

// cost is what a write costs: processor time of the API server, and the wait of the client.
type cost struct{ cpu, wait time.Duration }

func measure(b *testing.B, write func(i int) error, writes int) cost {
	b.Helper()
	pid := server.Newest("kube-apiserver").PID()
	before := processorTime(b, pid)
	waits := make([]time.Duration, writes)
	for i := range waits {
		started := time.Now()
		kit.Must(b, write(int(started.UnixMicro()%1_000_000_000)))
		waits[i] = time.Since(started)
	}
	slices.Sort(waits)
	return cost{(processorTime(b, pid) - before) / time.Duration(writes), waits[writes/2]}
}

// processorTime returns the user and system time of a process, as Linux counts it.
func processorTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	kit.Must(b, err)
	words := strings.Fields(string(text))
	user, err := strconv.Atoi(words[13])
	kit.Must(b, err)
	system, err := strconv.Atoi(words[14])
	kit.Must(b, err)
	return time.Duration(user+system) * 10 * time.Millisecond
}

func bindingsOf(b *testing.B) []admissionregistrationv1.ValidatingAdmissionPolicyBinding {
	b.Helper()
	found, err := server.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().List(b.Context(), metav1.ListOptions{})
	kit.Must(b, err)
	return found.Items
}

// wideBinding creates the wide policy, and returns its binding.
func wideBinding(b *testing.B) admissionregistrationv1.ValidatingAdmissionPolicyBinding {
	b.Helper()
	var policy admissionregistrationv1.ValidatingAdmissionPolicy
	kit.Must(b, yaml.UnmarshalStrict([]byte(wide), &policy))
	kit.Must(b, kit.ErrorOf(server.AdmissionregistrationV1().ValidatingAdmissionPolicies().Create(b.Context(), &policy, metav1.CreateOptions{})))
	return admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
}

// bindOnly makes these bindings the only ones, and waits until that takes effect.
func bindOnly(b *testing.B, wanted []admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
	b.Helper()
	client := server.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	kit.Must(b, client.DeleteCollection(b.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	for i := range wanted {
		binding := wanted[i].DeepCopy()
		binding.ResourceVersion = ""
		if err := kit.ErrorOf(client.Create(b.Context(), binding, metav1.CreateOptions{})); err != nil && !apierrors.IsAlreadyExists(err) {
			b.Fatal(err)
		}
	}
	for what, refused := range probes() {
		if what == "the webhook is gone" {
			continue
		}
		kit.EventuallyTrue(b, fmt.Sprintf("%s: want %t", what, wanted != nil), func() bool {
			is, err := refused(b.Context())
			kit.Must(b, err)
			return is == (wanted != nil)
		})
	}
}

// configureWebhook creates the webhook's configuration, and waits until the API server asks the webhook about
// Applications. There is none, so it refuses them.
func configureWebhook(b *testing.B) {
	b.Helper()
	text, err := os.ReadFile(filepath.Join(server.Dir(), "manifests/base/webhook/configuration.yaml"))
	kit.Must(b, err)
	var configuration admissionregistrationv1.MutatingWebhookConfiguration
	kit.Must(b, yaml.UnmarshalStrict(text, &configuration))
	client := server.AdmissionregistrationV1().MutatingWebhookConfigurations()
	kit.Must(b, kit.ErrorOf(client.Create(b.Context(), &configuration, metav1.CreateOptions{})))
	awaitWebhook(b, false)
}

func forgetWebhook(b *testing.B) {
	b.Helper()
	client := server.AdmissionregistrationV1().MutatingWebhookConfigurations()
	kit.Must(b, client.Delete(b.Context(), "krake-webhook", metav1.DeleteOptions{}))
	awaitWebhook(b, true)
}

func awaitWebhook(b *testing.B, gone bool) {
	b.Helper()
	const what = "the webhook is gone"
	kit.EventuallyTrue(b, fmt.Sprintf("%s: want %t", what, gone), func() bool {
		is, err := probes()[what](b.Context())
		kit.Must(b, err)
		return is == gone
	})
}
