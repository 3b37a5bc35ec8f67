package faults

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// An agent is replaced by its next version, whose status has more fields, and then by
// the former version again. Neither writes anything to the target.
func TestUpgrade(t *testing.T) {
	kit.Long(t, "two versions of the agent")
	t.Parallel()
	const many = 5
	next := nextVersion(t)
	l := newLane(t, "upgrade", "--namespaces", "upgrade")
	apps := l.newApps(many)
	kit.Must(t, each(apps, func(a *app) error {
		return creates("configmap one", "service 80", "deployment main:1")(t.Context(), a)
	}))
	sentinel := l.newApp()
	kit.Must(t, creates("configmap one")(t.Context(), sentinel))
	kit.Must(t, l.await(t.Context(), standing(append(slices.Clone(apps), sentinel))))
	for _, version := range []struct{ what, program string }{{"N+1", next}, {"N again", ""}} {
		mark, err := kit.MarkAudit(env.Cluster)
		kit.Must(t, err)
		kit.Must(t, l.agent.kill())
		l.agent.program = version.program
		kit.Must(t, l.agent.start())
		// The agent has read everything once it carries out the current spec and had
		// time for further writes.
		kit.Must(t, l.await(t.Context(), standing([]*app{sentinel})))
		kit.Must(t, says("configmap "+strings.ReplaceAll(version.what, " ", "-"))(t.Context(), sentinel))
		kit.Must(t, l.await(t.Context(), standing([]*app{sentinel})))
		kit.Must(t, sleep(t.Context(), late))
		kit.Must(t, standing(apps)(t.Context()))
		requests, err := mark.FindNaming(naming(l.namespace))
		kit.Must(t, err)
		hub := 0
		for i := range requests {
			r := &requests[i]
			switch byAgent := strings.HasSuffix(r.User.Username, ":"+l.name); {
			case !byAgent || !slices.Contains([]string{"create", "update", "patch", "delete"}, r.Verb) || r.Object.Resource == "events":
			case sentinel.owns(r.Object.Name):
			case slices.ContainsFunc(apps, func(a *app) bool { return a.Name == r.Object.Name }):
				hub++
			default:
				t.Errorf("%s: written to the target: %s", version.what, r)
			}
		}
		t.Logf("%s: %d writes of a status for %d Applications, and none to the target", version.what, hub, many)
		if hub > many {
			t.Errorf("%s: %d writes of a status for %d Applications", version.what, hub, many)
		}
		if version.program != "" && hub == 0 {
			t.Error("the next version is not at work: it writes nothing of its own")
		}
	}
}

// nextVersion builds an agent that writes a status field that this version does not
// know.
func nextVersion(t *testing.T) string {
	t.Helper()
	codec := filepath.Join(checkout(t), "pkg", "application", "status.go")
	text, err := os.ReadFile(codec)
	kit.Must(t, err)
	const known = "`json:\"observedSpec,omitempty\"`\n"
	if strings.Count(string(text), known) != 1 {
		t.Fatalf("%s has not %q once", codec, known)
	}
	changed := strings.Replace(string(text), known, known+"	Next bool `json:\"next\"`\n", 1)
	return buildWith(t, map[string]string{codec: changed}, ".", "./cmd/agent")
}

// The field of the next version is unknown here; the upgrade test needs that.
func TestNextIsUnknown(t *testing.T) {
	text, err := json.Marshal(application.Status{})
	kit.Must(t, err)
	if strings.Contains(string(text), "next") {
		t.Errorf("the status is %s", text)
	}
}
