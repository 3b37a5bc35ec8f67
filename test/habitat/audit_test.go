package habitat

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// Who is who in the audit log.
const (
	habitatUser = "system:serviceaccount:krake-system:krake-habitat"
	agentUser   = "system:serviceaccount:krake-agents:local"
)

// credentialKey is where the audit log has the token by which a request was made.
const credentialKey = "authentication.kubernetes.io/credential-id"

// logged is an event of the audit log: a request that was answered.
type logged struct {
	Stage string `json:"stage"`
	Verb  string `json:"verb"`
	User  struct {
		Username string              `json:"username"`
		Extra    map[string][]string `json:"extra"`
	} `json:"user"`
	Body  json.RawMessage `json:"requestObject"`
	Error struct {
		Code    int
		Message string
	} `json:"responseStatus"`
	Of struct {
		Group       string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	Received time.Time `json:"requestReceivedTimestamp"`
	Ended    time.Time `json:"stageTimestamp"`
}

func (l logged) String() string {
	return fmt.Sprintf("%s %s %s %s %s/%s -> %d %s", l.Received.Format("15:04:05.000"), l.User.Username, l.Verb, l.resource(), l.Of.Namespace, l.name(), l.Error.Code, l.Body)
}

// resource is that of RBAC: configmaps, pods/status.
func (l logged) resource() string {
	return strings.TrimSuffix(l.Of.Resource+"/"+l.Of.Subresource, "/")
}

// name is that of the object, also where the request does not say it in its path.
func (l logged) name() string {
	var body struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if l.Of.Name == "" && json.Unmarshal(l.Body, &body) == nil {
		return body.Metadata.Name
	}
	return l.Of.Name
}

func (l logged) isAccepted() bool {
	return l.Error.Code >= http.StatusOK && l.Error.Code < http.StatusMultipleChoices
}

func (l logged) isWrite() bool {
	return !slices.Contains([]string{"get", "list", "watch"}, l.Verb)
}

// isOurs tells of requests of the agent, and of what carries out Habitats.
func (l logged) isOurs() bool {
	return l.User.Username == habitatUser || l.User.Username == agentUser
}

// isWork tells of a write that is none of a leader's upkeep.
func (l logged) isWork() bool { return l.isOurs() && l.isWrite() && l.Of.Resource != "leases" }

// by tells if a request was made with a credential.
func (l logged) by(credential string) bool {
	return slices.Contains(l.User.Extra[credentialKey], credential)
}

// mark is a place in the audit log of a control plane.
type mark struct {
	plane *plane
	place int64
}

func (p *plane) mark(t *testing.T) mark {
	t.Helper()
	info, err := os.Stat(p.AuditLog())
	must(t, err)
	return mark{p, info.Size()}
}

// requests gives those since the mark that are asked for, oldest first.
func (m mark) requests(wanted func(logged) bool) ([]logged, error) {
	var found []logged
	err := m.plane.AuditLines(m.place, func(line []byte) error {
		var l logged
		if err := json.Unmarshal(line, &l); err != nil {
			return fmt.Errorf("%w in %s", err, line)
		}
		// A watch is known when it begins, everything else when it has ended.
		if (l.Stage == "ResponseStarted") == (l.Verb == "watch") && wanted(l) {
			found = append(found, l)
		}
		return nil
	})
	return found, err
}

func (m mark) mustRequests(t *testing.T, wanted func(logged) bool) []logged {
	t.Helper()
	found, err := m.requests(wanted)
	must(t, err)
	return found
}

// worked gives the writes of agent and controllers in a namespace.
func (m mark) worked(t *testing.T, namespace string) []logged {
	t.Helper()
	return m.mustRequests(t, func(l logged) bool { return l.isWork() && l.Of.Namespace == namespace })
}

// awaitCalm waits until agent and controllers have written nothing in a namespace for
// three seconds, and gives the place in the audit log from which on that was so.
func (h home) awaitCalm(t *testing.T) mark {
	t.Helper()
	const calm = 3 * time.Second
	last, since := h.mark(t), time.Now()
	eventually(t, func() string {
		if made := last.worked(t, h.namespace); len(made) > 0 {
			last, since = h.mark(t), time.Now()
			return fmt.Sprintf("there are still writes: %v", made)
		}
		if rest := calm - time.Since(since); rest > 0 {
			return fmt.Sprintf("it must be calm for %s more", rest)
		}
		return ""
	})
	return last
}

// checkRequests fails if what carries out Habitats has written anything that is not
// its own to write, or was refused anything. It says how often it asked for what.
func (p *plane) checkRequests() error {
	found, err := mark{plane: p}.requests(func(l logged) bool { return l.User.Username == habitatUser })
	failures := []error{err}
	verbs := map[string]int{}
	for _, l := range found {
		verbs[l.Verb+" "+l.resource()]++
		if problem := l.problem(); problem != "" {
			failures = append(failures, fmt.Errorf("%s: %s", problem, l))
		}
	}
	fmt.Fprintf(os.Stderr, "habitat: what carries out Habitats has asked for: %v\n", verbs)
	if len(found) == 0 {
		failures = append(failures, errors.New("the audit log has nothing of what carries out Habitats"))
	}
	return errors.Join(failures...)
}

// problem says what is wrong with a request of what carries out Habitats.
func (l logged) problem() string {
	switch {
	case l.Error.Code == http.StatusForbidden && !isLate(l.Error.Message):
		return "it is refused"
	case !l.isWrite():
		return l.problemOfRead()
	case !l.isOwnWrite():
		return "it is not its own to write"
	}
	return ""
}

// isLate tells of what is refused because a namespace goes.
func isLate(message string) bool { return strings.Contains(message, "being terminated") }

// problemOfRead: Secrets are seen by a watch of their metadata (see
// TestSecretsAreNotRead), and never asked for one by one; Deployments are nobody's
// business but the agent's.
func (l logged) problemOfRead() string {
	readable := map[string][]string{
		"habitats":                  {"list", "watch"},
		"configmaps":                {"get", "list", "watch"},
		"pods":                      {"list", "watch"},
		"statefulsets":              {"get", "list", "watch"},
		"secrets":                   {"list", "watch"},
		"customresourcedefinitions": {"get"},
		"leases":                    {"get"},
		"":                          {"get"}, // discovery
	}
	if !slices.Contains(readable[l.resource()], l.Verb) {
		return "it is nothing that it needs to read"
	}
	return ""
}

func (l logged) isOwnWrite() bool {
	writable := map[string][]string{
		"configmaps":                {"create", "patch"},
		"habitats/status":           {"patch"},
		"pods":                      {"delete"},
		"events":                    {"create", "patch"},
		"customresourcedefinitions": {"create", "update"},
		"leases":                    {"create", "update"},
	}
	if !slices.Contains(writable[l.resource()], l.Verb) {
		return false
	}
	switch l.resource() {
	case "configmaps":
		return strings.HasPrefix(l.name(), "habitat-") || l.name() == "peer-watch-file" && l.Verb == "patch" && isPeerPatch(l.Body)
	case "pods":
		return isPrecise(l.Body)
	case "customresourcedefinitions":
		return l.name() == "habitats.habitat.sh"
	case "leases":
		return l.Of.Namespace == application.SystemNamespace && l.name() == "krake-habitat"
	}
	return true
}

// isPeerPatch tells of a patch of nothing but the one key of the data, of a certain
// version of the ConfigMap.
func isPeerPatch(body json.RawMessage) bool {
	var patch struct {
		Data     map[string]string `json:"data"`
		Metadata map[string]string `json:"metadata"`
	}
	if json.Unmarshal(body, &patch) != nil {
		return false
	}
	_, peer := patch.Data["peer-watch-file"]
	return peer && len(patch.Data) == 1 && patch.Metadata["resourceVersion"] != "" && len(patch.Metadata) == 1
}

// isPrecise tells of the deletion of a certain object, and not of whatever has its
// name.
func isPrecise(body json.RawMessage) bool {
	var options struct {
		Preconditions struct {
			UID string `json:"uid"`
		} `json:"preconditions"`
	}
	return json.Unmarshal(body, &options) == nil && options.Preconditions.UID != ""
}
