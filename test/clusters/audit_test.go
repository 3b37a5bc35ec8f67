package clusters

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// request is an event of an audit log: a request that was answered, or was cut off.
type request struct {
	Stage string `json:"stage"`
	Verb  string `json:"verb"`
	User  struct {
		Username string `json:"username"`
	} `json:"user"`
	Object struct {
		Group       string `json:"apiGroup"`
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
	return fmt.Sprintf("%s %s %s %s/%s %s/%s -> %d", r.Received.Format("15:04:05.000"), r.User.Username, r.Verb,
		r.Object.Resource, r.Object.Subresource, r.Object.Namespace, r.name(), r.Status.Code)
}

func (r request) isWrite() bool { return !slices.Contains([]string{"get", "list", "watch"}, r.Verb) }

func (r request) isAccepted() bool {
	return r.Status.Code >= http.StatusOK && r.Status.Code < http.StatusMultipleChoices
}

// isWork tells of a write that is none of the leader's upkeep, and tells nobody
// anything.
func (r request) isWork() bool {
	return r.isWrite() && r.Object.Resource != "leases" && r.Object.Resource != "events"
}

// name is that of the object, also where the request does not say it in its path.
func (r request) name() string {
	var body struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if r.Object.Name == "" && json.Unmarshal(r.Body, &body) == nil {
		return body.Metadata.Name
	}
	return r.Object.Name
}

// agentUser is who the agent of a cluster is, on the hub and on its target.
func agentUser(name string) string { return "system:serviceaccount:krake-agents:" + name }

// by asks for the requests of an agent.
func by(name string) func(request) bool {
	return func(r request) bool { return r.User.Username == agentUser(name) }
}

// in asks for the requests that concern a namespace.
func in(namespace string) func(request) bool {
	return func(r request) bool { return r.Object.Namespace == namespace }
}

// mark is a place in the audit log of a control plane.
type mark struct {
	plane plane
	place int64
}

func auditMark(t *testing.T, of plane) mark {
	t.Helper()
	info, err := os.Stat(of.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	return mark{of, info.Size()}
}

// requests gives those since the mark of which all holds that is asked for, oldest
// first.
func (m mark) requests(t *testing.T, wanted ...func(request) bool) []request {
	t.Helper()
	var found []request
	err := m.plane.AuditLines(m.place, func(line []byte) error {
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			return fmt.Errorf("%w in %s", err, line)
		}
		if r.Stage != "ResponseStarted" && !slices.ContainsFunc(wanted, func(is func(request) bool) bool { return !is(r) }) {
			found = append(found, r)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// list shows requests, one a line.
func list(requests []request) string {
	var text strings.Builder
	for _, r := range requests {
		fmt.Fprintf(&text, "\n  %s", r)
	}
	return text.String()
}
