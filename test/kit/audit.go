package kit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/test/cluster"
)

// The users of an installation, as the audit log names them.
const (
	LocalAgent  = agentPrefix + "local"
	WebhookUser = "system:serviceaccount:krake-system:krake-webhook"
	HabitatUser = "system:serviceaccount:krake-system:krake-habitat"

	agentPrefix = "system:serviceaccount:krake-agents:"
)

// AgentUser returns the user name of the agent of a cluster, on the hub and on the
// target.
func AgentUser(cluster string) string { return agentPrefix + cluster }

// Request is one event of an audit log (audit.k8s.io/v1 Event): a request that was
// answered or cut off.
type Request struct {
	Stage string `json:"stage"`
	Verb  string `json:"verb"`
	URI   string `json:"requestURI"`
	Agent string `json:"userAgent"` // the name of the program
	User  User   `json:"user"`
	As    User   `json:"impersonatedUser"`
	How   struct {
		ImpersonationConstraint string `json:"impersonationConstraint"`
	} `json:"authenticationMetadata"`
	// Object is the target of the request. A create has no name here, see
	// [Request.Name].
	Object struct {
		Group       string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		Subresource string `json:"subresource"`
	} `json:"objectRef"`
	Body   json.RawMessage `json:"requestObject"`
	Answer json.RawMessage `json:"responseObject"`
	Status struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"responseStatus"`
	Annotations map[string]string `json:"annotations"`
	Received    time.Time         `json:"requestReceivedTimestamp"`
	Ended       time.Time         `json:"stageTimestamp"`
}

// User is the authenticated or impersonated user of a request.
type User struct {
	Username string              `json:"username"`
	Groups   []string            `json:"groups"`
	Extra    map[string][]string `json:"extra"`
}

// DecodeRequest decodes one line of an audit log.
func DecodeRequest(line []byte) (Request, error) {
	var r Request
	if err := json.Unmarshal(line, &r); err != nil {
		return Request{}, fmt.Errorf("decode an audit event: %w in %s", err, line)
	}
	return r, nil
}

// String shows the time, user, request and result, and the body of a write.
func (r Request) String() string {
	return fmt.Sprintf("%s %s %s %s %s/%s -> %d %s", r.Received.Format("15:04:05.000"), r.User.Username, r.Verb,
		r.Resource(), r.Object.Namespace, r.Name(), r.Status.Code, r.Body)
}

// Resource returns the resource as RBAC writes it: configmaps, pods/status.
func (r Request) Resource() string {
	return strings.TrimSuffix(r.Object.Resource+"/"+r.Object.Subresource, "/")
}

// Name returns the name of the object, from the body if the path does not have it.
func (r Request) Name() string {
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

// IsWrite reports whether the request may change something.
func (r Request) IsWrite() bool { return !slices.Contains([]string{"get", "list", "watch"}, r.Verb) }

// IsAccepted reports whether the answer is a success.
func (r Request) IsAccepted() bool {
	return r.Status.Code >= http.StatusOK && r.Status.Code < http.StatusMultipleChoices
}

// IsForbidden reports whether the request was refused for lack of rights. It excludes a
// write into a namespace that is being deleted, which has the same code.
func (r Request) IsForbidden() bool {
	return r.Status.Code == http.StatusForbidden && !strings.Contains(r.Status.Message, "being terminated")
}

// IsCutOff reports whether the client was gone before the answer. The request may still
// have been carried out.
func (r Request) IsCutOff() bool {
	return r.Status.Code == 0 || r.Status.Code >= http.StatusInternalServerError
}

// IsAgents reports whether an agent of any cluster made the request.
func (r Request) IsAgents() bool { return strings.HasPrefix(r.User.Username, agentPrefix) }

// IsBy reports whether the request was made with this token (see
// installation.Installation.AgentCredential).
func (r Request) IsBy(credential string) bool { return slices.Contains(r.Credentials(), credential) }

// Credentials returns the IDs of the token that the request was made with.
func (r Request) Credentials() []string {
	return r.User.Extra["authentication.kubernetes.io/credential-id"]
}

// Leads reports whether the request takes or renews a Lease. A holder that releases its
// Lease leaves the holder's name empty.
func (r Request) Leads() bool {
	var lease struct {
		Spec struct {
			Holder string `json:"holderIdentity"`
		} `json:"spec"`
	}
	return r.Object.Resource == "leases" && r.IsWrite() && r.IsAccepted() && json.Unmarshal(r.Body, &lease) == nil && lease.Spec.Holder != ""
}

// PatchPaths returns the paths that a JSON Patch writes, without its guard, the
// resourceVersion.
func (r Request) PatchPaths(t testing.TB) []string {
	t.Helper()
	var operations []struct {
		Path string `json:"path"`
	}
	if err := json.Unmarshal(r.Body, &operations); err != nil {
		t.Fatalf("the body of %s is no JSON Patch: %v", r, err)
	}
	var paths []string
	for _, operation := range operations {
		if operation.Path != "/metadata/resourceVersion" {
			paths = append(paths, operation.Path)
		}
	}
	return paths
}

// IsWork reports whether the request is a write other than the upkeep of a Lease.
func (r Request) IsWork() bool { return r.IsWrite() && r.Object.Resource != "leases" }

// A Filter selects requests.
type Filter = func(Request) bool

// By selects the requests of a user.
func By(user string) Filter { return func(r Request) bool { return r.User.Username == user } }

// ByCredential selects the requests that were made with a token.
func ByCredential(credential string) Filter {
	return func(r Request) bool { return r.IsBy(credential) }
}

// In selects the requests that concern a namespace.
func In(namespace string) Filter {
	return func(r Request) bool { return r.Object.Namespace == namespace }
}

// Of selects the requests for a resource, without its subresources.
func Of(resource string) Filter { return func(r Request) bool { return r.Resource() == resource } }

// Select returns the requests that pass all filters.
func Select(requests []Request, filters ...Filter) []Request {
	var found []Request
	for _, r := range requests {
		if passes(r, filters) {
			found = append(found, r)
		}
	}
	return found
}

func passes(r Request, filters []Filter) bool {
	return !slices.ContainsFunc(filters, func(is Filter) bool { return !is(r) })
}

// List returns the requests, one on each line.
func List(requests []Request) string {
	var text strings.Builder
	for _, r := range requests {
		fmt.Fprintf(&text, "\n  %s", r)
	}
	return text.String()
}

// Mark is a moment in the audit log of a cluster. The zero moment is the beginning.
type Mark struct {
	of    *cluster.Cluster
	place int64
	// begin excludes requests that were received before the mark. The API server logs a
	// request after it has stored the object. Its line may therefore follow the mark of
	// a test that has already read the result.
	begin time.Time
}

// ErrNoAuditLog means that the cluster has no readable audit log.
var ErrNoAuditLog = errors.New("the cluster has no audit log that can be read: set KRAKE_E2E_AUDIT_LOG")

// MarkAudit returns the current end of the audit log.
func MarkAudit(of *cluster.Cluster) (Mark, error) {
	if of.AuditLog() == "" {
		return Mark{}, ErrNoAuditLog
	}
	now := time.Now().Truncate(time.Microsecond) // the precision of the log
	info, err := os.Stat(of.AuditLog())
	if errors.Is(err, fs.ErrNotExist) {
		return Mark{of, 0, now}, nil // nothing has been logged yet
	}
	if err != nil {
		return Mark{}, fmt.Errorf("read the audit log: %w", err)
	}
	return Mark{of, info.Size(), now}, nil
}

// WholeAudit returns the beginning of the audit log.
func WholeAudit(of *cluster.Cluster) Mark { return Mark{of: of} }

// Find returns the requests received since the mark that pass all filters, oldest first.
// A watch counts when it has begun, every other request when it has ended.
func (m Mark) Find(filters ...Filter) ([]Request, error) { return m.FindNaming(nil, filters...) }

// FindNaming is [Mark.Find] for requests whose event has one of the words. It does not
// decode the others, because that takes most of the time of a long log. Without words
// it selects all.
func (m Mark) FindNaming(words []string, filters ...Filter) ([]Request, error) {
	var found []Request
	err := m.of.AuditLines(m.place, func(line []byte) error {
		r, err := decodeRequest(line, words, slices.Concat([]Filter{m.precedes}, filters))
		if err == nil && r != nil {
			found = append(found, *r)
		}
		return err
	})
	return found, err
}

// precedes reports whether the request was received since the mark.
func (m Mark) precedes(r Request) bool { return !r.Received.Before(m.begin) }

// decodeRequest decodes a line, and returns nil unless the request is selected.
func decodeRequest(line []byte, words []string, filters []Filter) (*Request, error) {
	if words != nil && !slices.ContainsFunc(words, func(word string) bool { return bytes.Contains(line, []byte(word)) }) {
		return nil, nil
	}
	r, err := DecodeRequest(line)
	if err != nil || (r.Stage == "ResponseStarted") != (r.Verb == "watch") || !passes(r, filters) {
		return nil, err
	}
	return &r, nil
}

// Requests is [Mark.Find] for a test.
func (m Mark) Requests(t testing.TB, filters ...Filter) []Request {
	t.Helper()
	found, err := m.Find(filters...)
	Must(t, err)
	return found
}

// Calm waits until no request that passes the filters was made for a time, and returns
// the mark at which that time began.
func (m Mark) Calm(t testing.TB, span time.Duration, filters ...Filter) Mark {
	t.Helper()
	last, since := m, time.Now()
	Eventually(t, func() string {
		if made := last.Requests(t, filters...); len(made) > 0 {
			next, err := MarkAudit(m.of)
			Must(t, err)
			last, since = next, time.Now()
			return "there are still requests: " + List(made)
		}
		if remaining := span - time.Since(since); remaining > 0 {
			return fmt.Sprintf("it must be calm for %s more", remaining)
		}
		return ""
	})
	return last
}
