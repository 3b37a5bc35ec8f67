package hooks

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

const travels = "travels"

// traveller is an Application that is moved back and forth, with its agents.
type traveller struct {
	app

	mortals []*mortal
	at      int // index of its present cluster
	begin   []kit.Mark
}

func newTraveller(t *testing.T) *traveller {
	t.Helper()
	for _, each := range planes() {
		each.CreateNamespace(t, travels)
	}
	env.local.grant(t, travels)
	tr := &traveller{mortals: []*mortal{mortalize(t, env.local), mortalize(t, enrol(t, "east", env.east, []string{travels}))}}
	for _, each := range planes() {
		tr.begin = append(tr.begin, each.Mark(t))
	}
	tr.app = newApp(t, travels, "web", web, settings{"hooks": "shutdown", "shutdown-grace-time": "1h"})
	tr.mustArrive(t)
	return tr
}

func (tr *traveller) here() *mortal  { return tr.mortals[tr.at] }
func (tr *traveller) there() *mortal { return tr.mortals[1-tr.at] }

// depart moves the Application to the other cluster, as the user.
func (tr *traveller) depart(t *testing.T) {
	t.Helper()
	tr.Annotate(t, "cluster", tr.there().Name)
	tr.at = 1 - tr.at
}

// mustArrive waits until the Application runs on its new cluster, and fails unless it
// has all objects there, and none elsewhere.
func (tr *traveller) mustArrive(t *testing.T) {
	t.Helper()
	outlive(t, tr.mortals, func() string {
		cm, status := tr.Stored(t), tr.ReadFor(t, tr.here().Name).Status
		if holders := application.HoldersOf(cm); !slices.Equal(holders, []string{tr.here().Name}) || status.ClusterName() != tr.here().Name {
			return fmt.Sprintf("it is held by %v, want %s: %s", holders, tr.here().Name, cm.Data[application.StatusKey])
		}
		return tr.Is(t, application.StateRunning)
	})
	tr.mustKeep(t, tr.here().plane)
	tr.checkGone(t, tr.there().plane)
}

// turn is the creation or deletion of a workload on a cluster.
type turn struct {
	kit.Request

	cluster int
}

// life returns the history of the workload on both clusters, oldest first.
func (tr *traveller) life(t *testing.T) []turn {
	t.Helper()
	var life []turn
	for cluster, begin := range tr.begin {
		for _, l := range begin.Requests(t, func(l kit.Request) bool {
			return l.IsAgents() && l.IsAccepted() && l.Object.Resource == "deployments" && l.Object.Namespace == travels
		}) {
			if l.Verb == "create" || l.Verb == "delete" {
				life = append(life, turn{l, cluster})
			}
		}
	}
	slices.SortFunc(life, func(a, b turn) int { return a.Ended.Compare(b.Ended) })
	return life
}

// checkApart fails if the workload was ever on both clusters: each creation must begin
// after the deletion on the other one.
func (tr *traveller) checkApart(t *testing.T) {
	t.Helper()
	created := 0
	var former turn
	for _, each := range tr.life(t) {
		switch {
		case each.Verb == "create":
			created++
			if former.Verb == "create" || each.Received.Before(former.Ended) {
				t.Errorf("it is created while another cluster has it: %s, %s", former, each)
			}
		case former.cluster != each.cluster || former.Verb != "create":
			t.Errorf("it is deleted where it was not: %s, %s", former, each)
		}
		former = each
	}
	t.Logf("it was created %d times", created)
	if created < 2 {
		t.Error("it was never moved: nothing was looked at")
	}
}

// An Application with the hook shutdown moves: it is asked to shut down on its cluster.
// When it has confirmed and is deleted there, it starts on the other one. Without a
// confirmation it stays complete on its first cluster only, until it confirms or is
// given up. Agents of both clusters are killed at some of their calls. It is never on
// both, and never lost.
func TestMoves(t *testing.T) {
	tr := newTraveller(t)
	program := func(t *testing.T, does func(http.ResponseWriter, *http.Request)) (pod, *watched) {
		t.Helper()
		w := newWatched(tr.app, tr.here().spoke)
		p := mustStartPod(t, tr.here().plane, travels, "web")
		if does == nil {
			does = w.confirms(t, p, tr.here().spoke)
		}
		w.do(t, does)
		return p, w
	}
	step := func(name string, do func(t *testing.T)) { // each begins where the previous one has ended
		if !t.Failed() {
			t.Run(name, do)
		}
	}
	step("it confirms", func(t *testing.T) {
		p, w := program(t, nil)
		begin := tr.here().plane.Mark(t)
		tr.depart(t)
		tr.mustArrive(t)
		w.mustBeAsked(t)
		checkPatience(t, begin, travels, w.said)
		if now := mustStartPod(t, tr.here().plane, travels, "web"); now.token(application.Shutdown) == p.token(application.Shutdown) {
			t.Error("the token of the former cluster is that of this one")
		}
	})
	step("it does not", func(t *testing.T) {
		tr.Annotate(t, "shutdown-grace-time", "1s")
		tr.mustArrive(t)
		from := tr.here()
		p, w := program(t, hangs)
		tr.depart(t)
		outlive(t, tr.mortals, func() string { return tr.Is(t, application.StateDegraded) })
		w.mustBeAsked(t)
		tr.mustKeep(t, from.plane)
		tr.checkGone(t, tr.here().plane)
		migrating := meta.FindStatusCondition(tr.ReadFor(t, tr.here().Name).Status.Conditions, application.MigratingCondition)
		if migrating == nil || migrating.Reason != "ShutdownNotConfirmed" {
			t.Errorf("it says %v", migrating)
		}
		from.confirmLate(t, tr.mortals, p)
		tr.mustArrive(t)
	})
	step("it goes back before it has left", func(t *testing.T) {
		tr.Annotate(t, "shutdown-grace-time", "1h")
		tr.mustArrive(t)
		_, w := program(t, heard)
		uid := tr.uid(t)
		tr.depart(t)
		outlive(t, tr.mortals, func() string { return tr.Is(t, application.StateWaiting) })
		tr.depart(t)
		tr.mustArrive(t)
		w.mustBeAsked(t)
		if now := tr.uid(t); now != uid {
			t.Error("the workload is another one")
		}
	})
	step("it is deleted anyway", func(t *testing.T) {
		tr.Annotate(t, "shutdown-grace-time", "1s")
		tr.Annotate(t, "shutdown-failure-strategy", "delete")
		tr.mustArrive(t)
		_, w := program(t, fails)
		tr.depart(t)
		tr.mustArrive(t)
		w.mustBeAsked(t)
		tr.Annotate(t, "shutdown-failure-strategy", "give_up")
		tr.Annotate(t, "shutdown-grace-time", "1h")
		tr.mustArrive(t)
	})
	for who, victim := range map[string]func() *mortal{"the agent that has it is killed": tr.here, "the agent that is to have it is killed": tr.there} {
		step(who, func(t *testing.T) {
			trials(t, tr.mortals, func(t *testing.T, call int, sent bool) *mortal {
				t.Helper()
				_, w := program(t, nil)
				m, begin := victim(), tr.here().plane.Mark(t)
				m.victim.Arm(call, sent)
				tr.depart(t)
				tr.mustArrive(t)
				w.mustBeAsked(t)
				checkPatience(t, begin, travels, w.said)
				return m
			})
		})
	}
	if t.Failed() {
		return
	}
	_, w := program(t, nil)
	tr.Delete(t)
	outlive(t, tr.mortals, func() string { return tr.IsGone(t) })
	w.mustBeAsked(t)
	tr.checkGone(t, planes()...)
	tr.checkApart(t)
}

// uid returns the UID of the workload.
func (tr *traveller) uid(t *testing.T) string {
	t.Helper()
	return tr.here().plane.Kubectl(t, "--namespace", travels, "get", "deployment", "web", "--output", "jsonpath={.metadata.uid}")
}
