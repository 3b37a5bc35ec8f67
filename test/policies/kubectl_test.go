package policies

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/krake-observer/krake-observer/test/kit"
)

// The exact text that users read while the webhook is down.
func TestWhatKubectlSays(t *testing.T) {
	namespace := newNamespace(t)
	moved(t, namespace)
	application, deletion := denied("krake-application"), denied("krake-application-deletion")
	for _, c := range []struct {
		command string
		input   string
		want    string
	}{
		{"annotate configmap app krake.dev/mode=observe --as=edith", "", "configmap/app annotated"},
		{"annotate configmap app krake.dev/application- --as=edith", "", application + isOne},
		{"label configmap app krake.dev/state=FAILED --overwrite --as=edith", "", application + agentsLabel},
		{`patch configmap app --type=merge --patch {"data":{"inventory.local":"[]","status":"x"}} --as=edith`, "", application + agentsKeys},
		{`patch configmap app --type=json --patch [{"op":"remove","path":"/metadata/finalizers"}] --as=edith`, "", application + dropFinalizer},
		{"apply --server-side --force-conflicts -f - --as=edith", `{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app"}, "data": {"status": "[]"}
		}`, application + agentsKeys},
		{"replace -f - --as=edith", `{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app", "annotations": {"krake.dev/application": "v1"}}
		}`, strings.Replace(application, ": ", `: error when replacing "STDIN": `, 1) + agentsKeys},
		{"delete configmap app --as=carl", "", deletion + mayNot("carl", namespace)},
		{"delete configmaps --selector team=blue --as=carl", "", deletion + mayNot("carl", namespace)},
		{"delete configmaps --selector team=blue --dry-run=server --as=carl", "", deletion + mayNot("carl", namespace)},
	} {
		arguments := append([]string{"--namespace", namespace}, strings.Fields(c.command)...)
		text, _ := kit.TryKubectl(t.Context(), server.Cluster, c.input, arguments...) // the output is compared
		if diff := cmp.Diff(c.want+"\n", text); diff != "" {
			t.Errorf("kubectl %s (-want +got):\n%s", c.command, diff)
		}
	}
}

func denied(policy string) string {
	return `Error from server (Forbidden): configmaps "app" is forbidden: ` +
		"ValidatingAdmissionPolicy '" + policy + "' with binding '" + policy + "' denied request: "
}
