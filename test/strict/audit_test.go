package strict

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
)

// request is an event of the audit log: a request of the agent that was answered.
type request struct {
	Stage string
	Verb  string
	User  struct{ Username string }
	As    struct {
		Username string
		Groups   []string
	} `json:"impersonatedUser"`
	How    struct{ ImpersonationConstraint string }                          `json:"authenticationMetadata"`
	Object struct{ APIGroup, Resource, Subresource, Namespace, Name string } `json:"objectRef"`
	Status struct {
		Code    int
		Message string
	} `json:"responseStatus"`
	// Client is the name of the program: the tests have the agent's token, too.
	Client string `json:"userAgent"`
}

func (r request) String() string {
	return fmt.Sprintf("%s %s.%s/%s %s/%s as %q -> %d", r.Verb, r.Object.Resource, r.Object.APIGroup, r.Object.Subresource,
		r.Object.Namespace, r.Object.Name, r.As.Username, r.Status.Code)
}

// isWork tells of writes to the target. What the agent writes on its own behalf is
// none: Events, its Leases, the status of Applications, and who may read its metrics.
func (r request) isWork() bool {
	switch {
	case slices.Contains([]string{"get", "list", "watch"}, r.Verb):
		return false
	case slices.Contains([]string{"events", "leases", "tokenreviews", "subjectaccessreviews"}, r.Object.Resource):
		return false
	}
	return r.Object.Resource != "configmaps" || !strings.HasPrefix(r.Object.Name, "app")
}

// isOwn tells of a write that the agent made as itself. The audit log has no account
// either where the agent may not act as it: that was no write.
func (r request) isOwn() bool {
	return r.As.Username == "" && (r.Status.Code != http.StatusForbidden || !strings.Contains(r.Status.Message, "cannot impersonate"))
}

func (r request) isAccepted() bool { return r.Status.Code >= 200 && r.Status.Code < 300 }

// mark gives the present end of the audit log.
func (w *world) mark(t *testing.T) int64 {
	t.Helper()
	info, err := os.Stat(w.cluster.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// work gives the agent's writes to the target since a mark, oldest first.
func (w *world) work(t *testing.T, since int64, namespace string) []request {
	t.Helper()
	all, err := w.requests(since)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(r request) bool {
		return !r.isWork() || namespace != "" && r.Object.Namespace != namespace
	})
}

// requests reads the agent's from the audit log. A line that is not written to its
// end is left for the next time.
func (w *world) requests(since int64) ([]request, error) {
	var found []request
	err := w.cluster.AuditLines(since, func(line []byte) error {
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			return fmt.Errorf("%w in %s", err, line)
		}
		if r.Stage != "ResponseStarted" && r.User.Username == agentUser && r.Client != testClient {
			found = append(found, r)
		}
		return nil
	})
	return found, err
}

// checkWrites fails if any write of the whole run was the agent's own. It says how
// many there were: a check of nothing would look like one.
func (w *world) checkWrites() error {
	all, err := w.requests(0)
	if err != nil {
		return err
	}
	var work int
	var failures []error
	for _, r := range all {
		if !r.isWork() {
			continue
		}
		work++
		if r.isOwn() {
			failures = append(failures, fmt.Errorf("the agent itself wrote: %s", r))
		}
	}
	fmt.Fprintf(os.Stderr, "strict: %d writes to the target, %d of them by the agent itself\n", work, len(failures))
	return errors.Join(failures...)
}
