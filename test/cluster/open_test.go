package cluster

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// noPods is why tests of processes do not run on a cluster of kind.
const noPods = "the tests have processes beside the cluster, which an API server in a container does not reach"

// The choice of a cluster follows only from the environment, and is explained.
func TestChoose(t *testing.T) {
	tests := []struct {
		name       string
		tier       string
		kubeconfig string
		want       string
		reasons    []string
		err        string
	}{
		{
			name:    "nothing is set",
			want:    "local",
			reasons: []string{"not existing: KRAKE_E2E_KUBECONFIG is not set", "not kind: " + noPods},
		},
		{name: "an existing cluster comes first", kubeconfig: "/a", want: "existing"},
		{
			name: "unless another is asked for", kubeconfig: "/a", tier: "local", want: "local",
			reasons: []string{"not existing: E2E_TIER is local", "not kind: E2E_TIER is local"},
		},
		{name: "what is asked for cannot be had", tier: "existing", err: "E2E_TIER=existing: KRAKE_E2E_KUBECONFIG is not set"},
		{name: "kind", tier: "kind", err: "E2E_TIER=kind: " + noPods},
		{name: "no such thing", tier: "minikube", err: "E2E_TIER=minikube: it is none of existing, kind, local"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("KRAKE_E2E_KUBECONFIG", test.kubeconfig)
			got, reasons, err := choose(t.Context(), Options{}, providers(), test.tier)
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Fatalf("error %v, want %q", err, test.err)
			}
			if got.tier != test.want {
				t.Errorf("got %q, want %q", got.tier, test.want)
			}
			if diff := cmp.Diff(test.reasons, reasons); diff != "" {
				t.Errorf("reasons (-want +got):\n%s", diff)
			}
		})
	}
}

// A named cluster that does not answer is an error, and no local one replaces it.
func TestOpenTakesNoOther(t *testing.T) {
	t.Setenv("KRAKE_E2E_KUBECONFIG", "/no/such/file")
	t.Setenv("E2E_TIER", "")
	_, err := Open(t.Context(), Options{Log: t.Output()})
	complains(t, err, "/no/such/file")
}
