package agent

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/internal/right"
	"github.com/krake-observer/krake-observer/test/check"
)

var (
	appName   = types.NamespacedName{Namespace: "demo", Name: "app"}
	otherName = types.NamespacedName{Namespace: "demo", Name: "other"}
)

// diary records calls.
type diary struct{ entries []string }

func (d *diary) note(format string, arguments ...any) {
	d.entries = append(d.entries, fmt.Sprintf(format, arguments...))
}

func (d *diary) noted(entry string) func() { return func() { d.note("%s", entry) } }

// newChanges returns changes with a diary. Their agent has two Applications, one of them not
// stored yet.
func newChanges(refusal *string) (*changes, *diary, *recorder) {
	var noted diary
	var told recorder
	return &changes{
		cluster: "edge",
		acting:  func(cluster string, acting bool) { noted.note("%s acting: %v", cluster, acting) },
		refusal: func() string { return *refusal },
		known:   func() []types.NamespacedName { return []types.NamespacedName{appName, otherName} },
		pending: func() []types.NamespacedName { return []types.NamespacedName{otherName} },
		wake: func(names []types.NamespacedName) {
			for _, name := range names {
				noted.note("wake %s", name)
			}
		},
		renewTarget: noted.noted("renew target"), renewHub: noted.noted("renew hub"),
		resyncTarget: noted.noted("resync target"), resyncHub: noted.noted("resync hub"),
		recorder: &told,
	}, &noted, &told
}

// The calls that each change causes. Applications whose objects may have changed unseen get a
// pass. A cluster that is reachable again is listed at once.
func TestChanges(t *testing.T) {
	one, other := "wake "+appName.String(), "wake "+otherName.String()
	cases := []struct {
		change right.Change
		want   []string
	}{
		{right.Acting, []string{"edge acting: true"}},
		{right.Refused, []string{"edge acting: false"}},
		{right.TargetLost, []string{"renew target", one, other}},
		{right.TargetBack, []string{"renew target", "resync target", one, other}},
		{right.HubLost, []string{"renew hub"}},
		{right.HubBack, []string{"renew hub", "resync hub", other}},
	}
	for _, c := range cases {
		t.Run(c.change.String(), func(t *testing.T) {
			changes, noted, _ := newChanges(new(string))
			changes.react(c.change)
			check.Equal(t, "done", c.want, noted.entries)
		})
	}
}

// An Event on the Lease explains why an agent does not act, because its users look there.
func TestRefused(t *testing.T) {
	why := "DuplicateAgent: somebody else"
	changes, _, events := newChanges(&why)
	changes.react(right.Refused)
	lease := corev1.ObjectReference{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: "krake-agents", Name: "krake-cluster-edge"}
	want := []told{{Regarding: lease, Text: "Warning DuplicateAgent DuplicateAgent: somebody else"}}
	check.Equal(t, "events", want, events.events)
}

// told is a recorded Event.
type told struct {
	Regarding corev1.ObjectReference
	Text      string
}

// recorder records Events.
type recorder struct{ events []told }

func (r *recorder) Eventf(regarding, _ runtime.Object, eventType, reason, _, _ string, arguments ...any) {
	event := told{Text: strings.Join([]string{eventType, reason, fmt.Sprint(arguments...)}, " ")}
	if one, ok := regarding.(*corev1.ObjectReference); ok {
		event.Regarding = *one
	}
	r.events = append(r.events, event)
}
