package checker

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
)

const (
	// callsAMinute limits the attempts at work that cannot be done.
	callsAMinute = 10
	// hot is how many writes of one object within short are a hot loop.
	hot, short = 40, 10 * time.Second
	// apart is the greatest factor between repairs with and without a troubled
	// neighbour. Differences below little are ignored.
	apart, little = 2, 20 * time.Millisecond
)

// isApart is I9.
func (j *judge) isApart() {
	if len(j.Waits.Untroubled) == 0 || len(j.Waits.Troubled) == 0 {
		return
	}
	usual, troubled := p99(j.Waits.Untroubled), p99(j.Waits.Troubled)
	if troubled > apart*usual && troubled > usual+little {
		j.report("I9", types.NamespacedName{}, "repairs take %s beside a troubled neighbour, and %s else (p99)", troubled, usual)
	}
}

func p99(durations []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(durations))
	return sorted[(len(sorted)*99+99)/100-1]
}

// Repairs returns how long each repair took: from the answer to another client's change
// to the answer to the agent's next write.
func Repairs(requests []Request) []time.Duration {
	var took []time.Duration
	for _, l := range replay(requests).lives {
		var drifted time.Time
		for _, turn := range l.turns {
			_, owned := ownerOf(turn.after)
			_, byAgent := agentOf(turn.User.Username)
			switch {
			case !owned || turn.before == nil:
			case !byAgent && turn.Object.Subresource == "" && drifted.IsZero():
				drifted = turn.Ended
			case byAgent && !drifted.IsZero():
				took = append(took, turn.Ended.Sub(drifted))
				drifted = time.Time{}
			}
		}
	}
	return took
}

// isBounded is I10.
func (j *judge) isBounded() {
	for _, stall := range j.Stalls {
		calls := 0
		for i := range j.Requests {
			r := &j.Requests[i]
			_, byAgent := agentOf(r.User.Username)
			if byAgent && r.Object.Resource != "events" && j.owners[keyOf(r)] == stall.App && r.Received.After(stall.From) && r.Received.Before(stall.Until) {
				calls++
			}
		}
		if most := callsAMinute * stall.Until.Sub(stall.From).Minutes(); float64(calls) > most {
			j.report("I10", stall.App, "%s: %d calls in %s while nothing could be done, want %.0f at most", stall.App, calls, stall.Until.Sub(stall.From), most)
		}
	}
	writes := map[key][]time.Time{}
	for i := range j.Requests {
		r := &j.Requests[i]
		if _, byAgent := agentOf(r.User.Username); !byAgent || !isWork(r) {
			continue
		}
		times := append(writes[keyOf(r)], r.Received)
		writes[keyOf(r)] = times
		if len(times) >= hot && times[len(times)-1].Sub(times[len(times)-hot]) < short {
			j.report("I10", j.owners[keyOf(r)], "%d writes in %s: %s", hot, times[len(times)-1].Sub(times[len(times)-hot]), r)
			writes[keyOf(r)] = nil
		}
	}
}

// isMonotone is I11.
func (j *judge) isMonotone() {
	for name, versions := range j.world.apps {
		newest, specs := 0, map[string]int{} // by digest, when it was the spec last
		for i, v := range versions {
			digest := v.app.Spec.Digest()
			if i == 0 || versions[i-1].app.Spec.Digest() != digest {
				specs[digest] = i
			}
			_, byAgent := agentOf(v.turn.User.Username)
			seen, known := specs[v.app.Status.ObservedSpec]
			if !byAgent || v.app.Status.ObservedSpec == "" || v.cm == nil {
				continue
			}
			if !known || seen < newest {
				j.report("I11", name, "the status of %s went back to a former spec: %s", name, v.turn.Request)
			}
			newest = max(newest, seen)
		}
		if _, settled := j.Settled[name]; settled {
			j.checkTruth(name)
		}
	}
}

// checkTruth compares the status of an Application with the objects.
func (j *judge) checkTruth(name types.NamespacedName) {
	now := j.last(name)
	if now.app.Deleted || now.app.Wishes.Mode != application.Enforce {
		return
	}
	status := now.app.Status
	if status.ObservedSpec != now.app.Spec.Digest() {
		j.report("I11", name, "the status of %s speaks of a former spec", name)
		return
	}
	wrong := []string{}
	for what, problem := range j.missing(name) {
		wrong = append(wrong, what+" "+problem)
	}
	for what := range now.wanted {
		if owner, owned := ownerOf(j.find(now.app.Cluster, what)); !owned || owner != name {
			wrong = append(wrong, what+" is not its own")
		}
	}
	slices.Sort(wrong)
	said := meta.IsStatusConditionTrue(status.Conditions, application.ReconciledCondition)
	if said != (len(wrong) == 0) {
		j.report("I11", name, "%s says %s=%t, and what is wrong is: %s", name, application.ReconciledCondition, said, strings.Join(wrong, "; "))
	}
	ready := meta.FindStatusCondition(status.Conditions, application.ReadyCondition)
	if ready != nil && ready.Status == metav1.ConditionTrue && !said {
		j.report("I11", name, "%s says that it is ready, and not reconciled", name)
	}
}
