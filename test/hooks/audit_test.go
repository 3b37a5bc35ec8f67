package hooks

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/krake-observer/krake-observer/internal/hooks"
	"github.com/krake-observer/krake-observer/internal/signature"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// isWork reports whether a request is a write, and is neither about Leases nor an
// Event.
func isWork(l kit.Request) bool {
	return l.IsAgents() && l.IsWrite() && !slices.Contains([]string{"leases", "events", "tokenreviews", "subjectaccessreviews"}, l.Object.Resource)
}

// worked returns the writes of agents in a namespace.
func worked(t *testing.T, since kit.Mark, namespace string) []kit.Request {
	t.Helper()
	return since.Requests(t, isWork, kit.In(namespace))
}

var ofHooks = regexp.MustCompile(`-krake-(complete|shutdown)-secret-(token|certs)$`)

// checkSecrets fails if an agent requested any Secret except those of hooks, by name,
// and the CA, or if a request was refused. It logs the number of requests of each form.
func checkSecrets() error {
	var failures []error
	verbs := map[string]int{}
	for _, each := range planes() {
		found, err := kit.WholeAudit(each.Cluster).Find(kit.Request.IsAgents)
		failures = append(failures, err)
		for _, l := range found {
			if problem := problem(l); problem != "" {
				failures = append(failures, fmt.Errorf("%s: %s", problem, l))
			}
			if l.Object.Resource == "secrets" {
				verbs[l.Verb]++
			}
		}
	}
	fmt.Fprintf(os.Stderr, "hooks: what the agents did with Secrets: %v\n", verbs)
	return errors.Join(failures...)
}

// isOfSignatures reports whether a request is about the public keys of the webhook alone.
func isOfSignatures(l kit.Request) bool {
	return l.Object.Namespace == application.AgentsNamespace && l.Name() == signature.PublicSecret
}

func problem(l kit.Request) string {
	allowed := []string{"get", "create", "patch", "delete"}
	authority := l.Object.Namespace == application.AgentsNamespace && l.Name() == hooks.AuthoritySecret
	if authority {
		allowed = []string{"get", "update"}
	}
	switch {
	case l.IsForbidden():
		return "it is refused"
	case l.Object.Resource != "secrets", isOfSignatures(l) && slices.Contains([]string{"list", "watch"}, l.Verb):
		return ""
	case !slices.Contains(allowed, l.Verb):
		return "the verb is not one of those granted"
	case !authority && !ofHooks.MatchString(l.Name()):
		return "the Secret is none of the hooks"
	}
	return ""
}
