package strict

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/test/kit"
)

// The agent logs once that an Application fails, and not at each try. Its administrator finds no
// error in the log: the user of the Application creates the account.
func TestAFailureIsLoggedOnce(t *testing.T) {
	w := narrow
	namespace := w.namespace(t)
	begin := w.Mark(t)
	w.apply(t, namespace, "app", settings)
	w.says(t, namespace, "app", "ServiceAccountNotFound", namespace+"/krake-deployer")
	const tries = 4
	kit.Eventually(t, func() string {
		if looks := begin.Requests(t, kit.In(namespace), kit.Of("serviceaccounts")); len(looks) < tries {
			return fmt.Sprintf("the agent has looked %d times for the account, want %d: %s", len(looks), tries, kit.List(looks))
		}
		return ""
	})
	// The binding comes first: an account without rights fails for another reason, which is logged, too.
	w.Kubectl(t, "--namespace", namespace, "create", "rolebinding", "krake-deployer", "--clusterrole", "edit", "--serviceaccount", namespace+":krake-deployer")
	w.account(t, namespace, "krake-deployer", "")
	w.reconciled(t, namespace, "app")

	kit.Eventually(t, func() string { // the end is logged after it is stored
		if counts := countLines(t, namespace, `"level":"ERROR"`, `"msg":"fails"`, `"msg":"no longer fails"`); !slices.Equal(counts, []int{0, 1, 1}) {
			return fmt.Sprintf("the log has %d errors, %d beginnings and %d ends", counts[0], counts[1], counts[2])
		}
		return ""
	})
}

// countLines counts the lines of the logs that name the namespace, by the parts that they have.
func countLines(t *testing.T, namespace string, parts ...string) []int {
	t.Helper()
	counts := make([]int, len(parts))
	paths, err := narrow.installation.LogFiles(t.Context())
	kit.Must(t, err)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		kit.Must(t, err)
		for line := range strings.Lines(string(text)) {
			for i, part := range parts {
				if strings.Contains(line, namespace) && strings.Contains(line, part) {
					counts[i]++
				}
			}
		}
	}
	return counts
}
