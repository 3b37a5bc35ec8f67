package strict

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/test/kit"
)

// isWork reports whether a request writes to the target. It excludes the agent's own
// affairs: Events, its Leases, the status of Applications, and reviews of readers of
// its metrics.
func isWork(r kit.Request) bool {
	switch {
	case !r.IsWrite():
		return false
	case slices.Contains([]string{"events", "leases", "tokenreviews", "subjectaccessreviews"}, r.Object.Resource):
		return false
	}
	return r.Object.Resource != "configmaps" || !strings.HasPrefix(r.Object.Name, "app")
}

// isOwn reports whether the agent made a write as itself. If the agent may not
// impersonate the account, the audit log does not have the account either: that request
// wrote nothing.
func isOwn(r kit.Request) bool {
	return r.As.Username == "" && (r.Status.Code != http.StatusForbidden || !strings.Contains(r.Status.Message, "cannot impersonate"))
}

// byAgent selects the agent's requests, because the tests use its token, too.
func byAgent(r kit.Request) bool { return r.User.Username == kit.LocalAgent && r.Agent != testClient }

// work returns the agent's writes to the target since a mark, oldest first.
func work(t *testing.T, since kit.Mark, namespace string) []kit.Request {
	t.Helper()
	return since.Requests(t, byAgent, isWork, func(r kit.Request) bool { return namespace == "" || r.Object.Namespace == namespace })
}

// checkNoneAccepted fails if the agent has written anything since the mark, as the
// account, which may not, or as itself.
func checkNoneAccepted(t *testing.T, since kit.Mark, namespace string) {
	t.Helper()
	for _, r := range work(t, since, namespace) {
		if isOwn(r) || r.IsAccepted() {
			t.Errorf("written: %s", r)
		}
	}
}

// checkAccount fails for each write that was not made as the account of the namespace.
func checkAccount(t *testing.T, writes []kit.Request, namespace string) {
	t.Helper()
	for _, r := range writes {
		if r.As.Username != "system:serviceaccount:"+namespace+":krake-deployer" {
			t.Errorf("not as the account: %s", r)
		}
	}
}

// checkWrites fails if any write of the whole run was the agent's own. It logs their
// number, because a check of no writes would also pass.
func (w *world) checkWrites() error {
	work, err := kit.WholeAudit(w.Cluster).Find(byAgent, isWork)
	if err != nil {
		return err
	}
	var failures []error
	for _, r := range kit.Select(work, isOwn) {
		failures = append(failures, fmt.Errorf("the agent itself wrote: %s", r))
	}
	fmt.Fprintf(os.Stderr, "strict: %d writes to the target, %d of them by the agent itself\n", len(work), len(failures))
	return errors.Join(failures...)
}
