package habitat

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// isOurs reports whether a request is from the agent or the Habitat controllers.
func isOurs(l kit.Request) bool {
	return l.User.Username == kit.HabitatUser || l.User.Username == kit.LocalAgent
}

// isWork reports whether a request is a write that is not upkeep of a Lease.
func isWork(l kit.Request) bool { return isOurs(l) && l.IsWork() }

func isDeletion(l kit.Request) bool { return l.Verb == "delete" }

// worked returns the writes of agent and controllers in a namespace.
func worked(t *testing.T, since kit.Mark, namespace string) []kit.Request {
	t.Helper()
	return since.Requests(t, isWork, kit.In(namespace))
}

// awaitCalm waits until agent and controllers have written nothing in a namespace for
// three seconds. It returns the mark at which that time began.
func (h home) awaitCalm(t *testing.T) kit.Mark {
	t.Helper()
	return h.Mark(t).Calm(t, 3*time.Second, isWork, kit.In(h.namespace))
}

// checkRequests fails if the Habitat controllers wrote an object that is not theirs, or
// if a request of theirs was refused. It logs the number of requests of each sort.
func (p *plane) checkRequests() error {
	found, err := kit.WholeAudit(p.Cluster).Find(kit.By(kit.HabitatUser))
	failures := []error{err}
	verbs := map[string]int{}
	for _, l := range found {
		if l.Agent == thief {
			continue
		}
		verbs[l.Verb+" "+l.Resource()]++
		if problem := problem(l); problem != "" {
			failures = append(failures, fmt.Errorf("%s: %s", problem, l))
		}
	}
	fmt.Fprintf(os.Stderr, "habitat: what carries out Habitats has asked for: %v\n", verbs)
	if len(found) == 0 {
		failures = append(failures, errors.New("the audit log has nothing of what carries out Habitats"))
	}
	return errors.Join(failures...)
}

// problem returns what is wrong with a request of the Habitat controllers.
func problem(l kit.Request) string {
	switch {
	case l.IsForbidden() && l.Resource() != "secrets": // where it is not granted, the Pods wait
		return "it is refused"
	case !l.IsWrite():
		return problemOfRead(l)
	case !isOwnWrite(l):
		return "it is not its own to write"
	}
	return ""
}

// problemOfRead: the controllers read the metadata of single Secrets (see
// TestSecretsAreNotRead), and never list or watch them. Only the agent reads
// Deployments.
func problemOfRead(l kit.Request) string {
	readable := map[string][]string{
		"habitats":                  {"list", "watch"},
		"configmaps":                {"get", "list", "watch"},
		"pods":                      {"list", "watch"},
		"statefulsets":              {"get", "list", "watch"},
		"secrets":                   {"get"},
		"customresourcedefinitions": {"get"},
		"leases":                    {"get"},
		"":                          {"get"}, // discovery
	}
	if !slices.Contains(readable[l.Resource()], l.Verb) {
		return "it is nothing that it needs to read"
	}
	return ""
}

func isOwnWrite(l kit.Request) bool {
	writable := map[string][]string{
		"configmaps":                {"create", "patch"},
		"habitats/status":           {"patch"},
		"pods":                      {"delete"},
		"events":                    {"create", "patch"},
		"customresourcedefinitions": {"create", "update"},
		"leases":                    {"create", "update"},
	}
	if !slices.Contains(writable[l.Resource()], l.Verb) {
		return false
	}
	switch l.Resource() {
	case "configmaps":
		return strings.HasPrefix(l.Name(), "habitat-") || l.Name() == "peer-watch-file" && l.Verb == "patch" && isPeerPatch(l.Body)
	case "pods":
		return isPrecise(l.Body)
	case "customresourcedefinitions":
		return l.Name() == "habitats.habitat.sh"
	case "leases":
		return l.Object.Namespace == application.SystemNamespace && l.Name() == "krake-habitat"
	}
	return true
}

// isPeerPatch reports whether a patch changes only the one key of the data, of a
// certain version of the ConfigMap.
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

// isPrecise reports whether a deletion names the UID of its object.
func isPrecise(body json.RawMessage) bool {
	var options struct {
		Preconditions struct {
			UID string `json:"uid"`
		} `json:"preconditions"`
	}
	return json.Unmarshal(body, &options) == nil && options.Preconditions.UID != ""
}
