package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/test/kit"
)

// operationsOf decodes the JSON Patch that is the body of the request.
func operationsOf(t *testing.T, r kit.Request) []operation {
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

// auditMark returns the current end of the audit log. On a cluster without one it skips
// the test, and the end of the run lists it.
func auditMark(t *testing.T) kit.Mark {
	t.Helper()
	if hub.AuditLog() == "" {
		cannotRun(t, kit.ErrNoAuditLog.Error())
	}
	return hub.Mark(t)
}

// ofAgent selects the agent's requests, except the renewals of its Lease and its
// watches.
func ofAgent(r kit.Request) bool {
	return r.User.Username == kit.LocalAgent && r.Object.Resource != "leases" && r.Verb != "watch"
}

// repairs returns the accepted patches of objects in a namespace since the mark, except
// those of Applications and Events. A patch with a conflict, and the read after it,
// belong to the repair that follows.
func repairs(t *testing.T, m kit.Mark, namespace string) []kit.Request {
	t.Helper()
	return m.Requests(t, ofAgent, kit.In(namespace), isRepair, func(r kit.Request) bool { return r.Status.Code == http.StatusOK })
}

func isRepair(r kit.Request) bool {
	return r.Verb == "patch" && r.Object.Resource != "configmaps" && r.Object.Resource != "events"
}

// eventuallyRepairs waits until the audit log has this many repairs in a namespace: an
// object shows its repair before the log does.
func eventuallyRepairs(t *testing.T, m kit.Mark, want int, namespace string) []kit.Request {
	t.Helper()
	var made []kit.Request
	kit.Eventually(t, func() string {
		made = repairs(t, m, namespace)
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

// checkRepairs fails if the body of a repair has anything except the guard and observed
// paths, which begin with one of the prefixes.
func checkRepairs(t *testing.T, requests []kit.Request, observed ...string) {
	t.Helper()
	for _, r := range requests {
		for i, operation := range operationsOf(t, r) {
			if i == 0 {
				if operation.Op != "replace" || operation.Path != "/metadata/resourceVersion" {
					t.Errorf("the first operation is no guard: %s", r)
				}
				continue
			}
			if !slices.ContainsFunc(observed, func(prefix string) bool { return strings.HasPrefix(operation.Path+"/", prefix+"/") }) {
				t.Errorf("%s is not observed: %s", operation.Path, r)
			}
		}
	}
}
