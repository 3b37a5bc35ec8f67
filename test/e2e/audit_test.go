package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
)

const agentUser = "system:serviceaccount:krake-agents:local"

// request is an event of the audit log: a request that was answered.
type request struct {
	Stage string `json:"stage"`
	Verb  string `json:"verb"`
	User  struct {
		Username string `json:"username"`
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
}

func (r request) String() string {
	return fmt.Sprintf("%s %s %s/%s -> %d %s", r.Verb, r.Object.Resource, r.Object.Namespace, r.Object.Name, r.Status.Code, r.Body)
}

func (r request) isWrite() bool {
	switch r.Verb {
	case "get", "list", "watch":
		return false
	}
	return true
}

// operations gives the JSON Patch that is the body of the request.
func (r request) operations(t *testing.T) []operation {
	t.Helper()
	var operations []operation
	if err := json.Unmarshal(r.Body, &operations); err != nil {
		t.Fatalf("the body of %s is no JSON Patch: %v", r, err)
	}
	return operations
}

type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// mark is a place in the audit log.
type mark int64

// auditMark gives the present end of the audit log. A cluster without one
// cannot show what the test is for: it is skipped, and says so.
func auditMark(t *testing.T) mark {
	t.Helper()
	path := env.cluster.AuditLog()
	if path == "" {
		cannotRun(t, "the cluster has no audit log that can be read: set KRAKE_E2E_AUDIT_LOG")
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return mark(info.Size())
}

// requests gives the agent's requests since the mark, oldest first, but the
// renewals of its Lease and of its watches.
func (m mark) requests(t *testing.T) []request {
	t.Helper()
	var found []request
	err := env.cluster.AuditLines(int64(m), func(line []byte) error {
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			return fmt.Errorf("%w in %s", err, line)
		}
		if r.User.Username == agentUser && r.Stage == "ResponseComplete" && r.Object.Resource != "leases" && r.Verb != "watch" {
			found = append(found, r)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("audit log: %v", err)
	}
	return found
}

// in leaves the requests that concern a namespace.
func in(namespace string, requests []request) []request {
	var found []request
	for _, r := range requests {
		if r.Object.Namespace == namespace {
			found = append(found, r)
		}
	}
	return found
}

// repairs leaves the patches of objects that were accepted: of everything but
// the Applications and their Events. A patch that met a newer object, and the
// read after it, are a part of the repair that follows.
func repairs(requests []request) []request {
	var found []request
	for _, r := range requests {
		if r.isRepair() && r.Status.Code == http.StatusOK {
			found = append(found, r)
		}
	}
	return found
}

func (r request) isRepair() bool {
	return r.Verb == "patch" && r.Object.Resource != "configmaps" && r.Object.Resource != "events"
}

// eventuallyRepairs waits for the audit log to show so many repairs in a
// namespace: an object shows its repair before the log does.
func (m mark) eventuallyRepairs(t *testing.T, want int, namespace string) []request {
	t.Helper()
	var made []request
	eventually(t, func() string {
		made = repairs(in(namespace, m.requests(t)))
		if len(made) < want {
			return fmt.Sprintf("%d repairs, want %d: %v", len(made), want, made)
		}
		return ""
	})
	if len(made) > want {
		t.Errorf("%d repairs, want %d: %v", len(made), want, made)
	}
	return made
}

// checkRepairs fails if the body of a repair holds anything but the guard and
// observed paths, which begin with one of the prefixes.
func checkRepairs(t *testing.T, requests []request, observed ...string) {
	t.Helper()
	for _, r := range requests {
		for i, operation := range r.operations(t) {
			if i == 0 {
				if operation.Op != "replace" || operation.Path != "/metadata/resourceVersion" {
					t.Errorf("the first operation is no guard: %s", r)
				}
				continue
			}
			if !hasAnyPrefix(operation.Path, observed) {
				t.Errorf("%s is not observed: %s", operation.Path, r)
			}
		}
	}
}

func hasAnyPrefix(path string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if path == prefix || strings.HasPrefix(path, prefix+"/") {
			return true
		}
	}
	return false
}
