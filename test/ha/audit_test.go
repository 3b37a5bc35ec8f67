package ha

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"
)

// agentUser is who all agents of the local cluster are.
const agentUser = "system:serviceaccount:krake-agents:local"

// credentialKey is where the API server says which of an agent's tokens it was.
const credentialKey = "authentication.kubernetes.io/credential-id"

// request is an event of the audit log: a request that was answered, or was cut
// off.
type request struct {
	Stage string `json:"stage"`
	Verb  string `json:"verb"`
	User  struct {
		Username string              `json:"username"`
		Extra    map[string][]string `json:"extra"`
	} `json:"user"`
	Object struct {
		Resource    string `json:"resource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	Body   json.RawMessage `json:"requestObject"`
	Status struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Received time.Time `json:"requestReceivedTimestamp"`
	Ended    time.Time `json:"stageTimestamp"`
}

func (r request) String() string {
	return fmt.Sprintf("%s %s/%s %s/%s -> %d", r.Verb, r.Object.Resource, r.Object.Subresource, r.Object.Namespace, r.Object.Name, r.Status.Code)
}

func (r request) isWrite() bool { return !slices.Contains([]string{"get", "list", "watch"}, r.Verb) }

func (r request) isAccepted() bool { return r.Status.Code >= 200 && r.Status.Code < 300 }

// isCutOff tells of a request whose client went before its answer: what it asked
// for may have been done all the same.
func (r request) isCutOff() bool {
	return r.Status.Code == 0 || r.Status.Code >= http.StatusInternalServerError
}

func (r request) isLease() bool { return r.Object.Resource == "leases" }

// leads tells of a request that takes or renews the Lease; whoever gives it back
// leaves its holder empty.
func (r request) leads() bool {
	var lease struct {
		Spec struct {
			Holder string `json:"holderIdentity"`
		} `json:"spec"`
	}
	if !r.isLease() || !r.isWrite() || !r.isAccepted() {
		return false
	}
	return json.Unmarshal(r.Body, &lease) == nil && lease.Spec.Holder != ""
}

// mark is a place in the audit log.
type mark int64

// auditMark gives the present end of the audit log. A cluster without one
// cannot show what these tests are for: they are skipped, and say so.
func auditMark(t *testing.T) mark {
	t.Helper()
	path := env.cluster.AuditLog()
	if path == "" {
		t.Skip("the cluster has no audit log that can be read: set KRAKE_E2E_AUDIT_LOG")
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return mark(info.Size())
}

// requests gives those since the mark that are asked for, oldest first. A line
// that is not written to its end is left for the next time.
func (m mark) requests(t *testing.T, wanted func(request) bool) []request {
	t.Helper()
	var found []request
	err := env.cluster.AuditLines(int64(m), func(line []byte) error {
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			return fmt.Errorf("%w in %s", err, line)
		}
		if r.Stage != "ResponseStarted" && wanted(r) {
			found = append(found, r)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// by asks for the requests of one agent.
func by(credential string) func(request) bool {
	return func(r request) bool { return slices.Contains(r.User.Extra[credentialKey], credential) }
}

// leader waits for the next renewal of the Lease, and gives the indices of the
// agent that made it and of the other one.
func leader(t *testing.T) (first, second int) {
	t.Helper()
	begin := auditMark(t)
	eventually(t, func() string {
		renewals := begin.requests(t, request.leads)
		for index := range agents {
			if slices.ContainsFunc(renewals, by(env.installation.AgentCredential(index))) {
				first, second = index, agents-1-index
				return ""
			}
		}
		return fmt.Sprintf("no agent renews the Lease: %v", renewals)
	})
	return first, second
}
