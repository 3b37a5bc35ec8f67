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

// hot is how many writes of one object within short are a hot loop.
const hot, short = 40, 10 * time.Second

// isBounded: an agent does not write the same object again and again.
func (j *judge) isBounded() {
	writes := map[key][]time.Time{}
	for i := range j.Requests {
		r := &j.Requests[i]
		if _, byAgent := agentOf(r.User.Username); !byAgent || !isWork(r) {
			continue
		}
		times := append(writes[keyOf(r)], r.Received)
		writes[keyOf(r)] = times
		if len(times) >= hot && times[len(times)-1].Sub(times[len(times)-hot]) < short {
			j.report(hotLoop, j.owners[keyOf(r)], "%d writes in %s: %s", hot, times[len(times)-1].Sub(times[len(times)-hot]), r)
			writes[keyOf(r)] = nil
		}
	}
}

// isMonotone: a status never returns to an earlier spec, and is true at the end.
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
				j.report(falseStatus, name, "the status of %s went back to a former spec: %s", name, v.turn.Request)
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
	if now.app.Deleted || now.app.Settings.Mode != application.Enforce {
		return
	}
	status := now.app.Status
	if status.ObservedSpec != now.app.Spec.Digest() {
		j.report(falseStatus, name, "the status of %s speaks of a former spec", name)
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
		j.report(falseStatus, name, "%s says %s=%t, and what is wrong is: %s", name, application.ReconciledCondition, said, strings.Join(wrong, "; "))
	}
	ready := meta.FindStatusCondition(status.Conditions, application.ReadyCondition)
	if ready != nil && ready.Status == metav1.ConditionTrue && !said {
		j.report(falseStatus, name, "%s says that it is ready, and not reconciled", name)
	}
}
