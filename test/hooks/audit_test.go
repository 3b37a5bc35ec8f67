package hooks

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/internal/hooks"
	"github.com/krake-observer/krake-observer/pkg/application"
)

// logged is an event of an audit log: a request that was answered.
type logged struct {
	Stage string                    `json:"stage"`
	Verb  string                    `json:"verb"`
	User  struct{ Username string } `json:"user"`
	As    struct{ Username string } `json:"impersonatedUser"`
	URI   string                    `json:"requestURI"`
	Agent string                    `json:"userAgent"`
	Body  json.RawMessage           `json:"requestObject"`
	Error struct {
		Code    int
		Message string
	} `json:"responseStatus"`
	Of struct {
		Group, Resource, Subresource, Namespace, Name string
	} `json:"objectRef"`
	Received time.Time `json:"requestReceivedTimestamp"`
	Ended    time.Time `json:"stageTimestamp"`
}

func (l logged) String() string {
	return fmt.Sprintf("%s %s %s %s %s/%s -> %d", l.Received.Format("15:04:05.000"), l.User.Username, l.Verb, l.Of.Resource, l.Of.Namespace, l.name(), l.Error.Code)
}

func (l logged) isAccepted() bool {
	return l.Error.Code >= http.StatusOK && l.Error.Code < http.StatusMultipleChoices
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

// isAgents tells of the requests of agents.
func (l logged) isAgents() bool {
	return strings.HasPrefix(l.User.Username, "system:serviceaccount:krake-agents:")
}

// isWork tells of a write that is none of the leader's upkeep, and tells nobody
// anything.
func (l logged) isWork() bool {
	return l.isAgents() && !slices.Contains([]string{"get", "list", "watch"}, l.Verb) &&
		!slices.Contains([]string{"leases", "events", "tokenreviews", "subjectaccessreviews"}, l.Of.Resource)
}

// mark is a place in the audit log of a control plane.
type mark struct {
	plane plane
	place int64
}

func markOf(t *testing.T, at plane) mark {
	t.Helper()
	info, err := os.Stat(at.AuditLog())
	must(t, err)
	return mark{at, info.Size()}
}

// requests gives those since the mark that are asked for, oldest first.
func (m mark) requests(wanted func(logged) bool) ([]logged, error) {
	var found []logged
	err := m.plane.AuditLines(m.place, func(line []byte) error {
		var l logged
		if err := json.Unmarshal(line, &l); err != nil {
			return fmt.Errorf("%w in %s", err, line)
		}
		if l.Stage != "ResponseStarted" && wanted(l) {
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

// worked gives the writes of agents in a namespace.
func (m mark) worked(t *testing.T, namespace string) []logged {
	t.Helper()
	return m.mustRequests(t, func(l logged) bool { return l.isWork() && l.Of.Namespace == namespace })
}

var ofHooks = regexp.MustCompile(`-krake-(complete|shutdown)-secret-(token|certs)$`)

// checkSecrets fails if an agent has ever asked for Secrets other than those of
// hooks, by name, and the CA; or was refused anything. It says how often it asked in
// which way.
func checkSecrets() error {
	var failures []error
	verbs := map[string]int{}
	for _, each := range planes() {
		found, err := mark{plane: each}.requests(logged.isAgents)
		failures = append(failures, err)
		for _, l := range found {
			if problem := l.problem(); problem != "" {
				failures = append(failures, fmt.Errorf("%s: %s", problem, l))
			}
			if l.Of.Resource == "secrets" {
				verbs[l.Verb]++
			}
		}
	}
	fmt.Fprintf(os.Stderr, "hooks: what the agents did with Secrets: %v\n", verbs)
	return errors.Join(failures...)
}

func (l logged) problem() string {
	allowed := []string{"get", "create", "patch", "delete"}
	authority := l.Of.Namespace == application.AgentsNamespace && l.name() == hooks.AuthoritySecret
	if authority {
		allowed = []string{"get", "update"}
	}
	switch {
	case l.Error.Code == http.StatusForbidden && !strings.Contains(l.Error.Message, "being terminated"):
		return "it is refused"
	case l.Of.Resource != "secrets":
		return ""
	case !slices.Contains(allowed, l.Verb):
		return "the verb is not one of those granted"
	case !authority && !ofHooks.MatchString(l.name()):
		return "the Secret is none of the hooks"
	}
	return ""
}
