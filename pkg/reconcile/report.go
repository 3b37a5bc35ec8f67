package reconcile

import (
	"sync"

	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// reporter reports actions on the objects of an Application, and keeps the history of their drifts. Several objects
// are written at the same time.
type reporter struct {
	// mu guards app.
	mu     sync.Mutex
	app    *application.Application
	report func(*application.Application, status.Outcome)
}

// about reports an outcome for an object.
func (r *reporter) about(o *object, outcome status.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.aboutLocked(o, outcome)
}

func (r *reporter) aboutLocked(o *object, outcome status.Outcome) {
	outcome.Object = o.plan.ID
	if outcome.UID = o.memory.proved; outcome.UID == "" {
		outcome.UID = o.observed.UID
	}
	r.report(r.app, outcome)
}

// remember adds a repaired drift to the history.
func (r *reporter) remember(o *object, drift status.Drift) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.app.Status.Remember(stamp(o, drift).Entry())
}

// detect reports an unrepaired drift, and adds it to the history, once.
func (r *reporter) detect(o *object, drift status.Drift, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	entry := stamp(o, drift).Entry()
	if status.IsRemembered(r.app.Status.Drifts, entry) {
		return
	}
	r.aboutLocked(o, status.Outcome{Action: status.Detected, Paths: pathsOf(drift.Differences), Culprit: drift.Culprit, Reason: reason})
	r.app.Status.Remember(entry)
}

// stamp adds the object, and the time when the drift was seen.
func stamp(o *object, drift status.Drift) status.Drift {
	drift.Object, drift.Seen = o.plan.ID, o.inputs.now
	if seen := o.observed.Seen; !seen.IsZero() {
		drift.Seen = seen
	}
	return drift
}

// itself is the identity of the Application, for outcomes about the Application.
func itself(app *application.Application) manifest.ID {
	return manifest.ID{APIVersion: "v1", Kind: "ConfigMap", Namespace: app.Namespace, Name: app.Name}
}

// beginnings reports conflicts and contention that began with this pass.
func (r *reporter) beginnings(objects []*object) {
	for _, o := range objects {
		reason := o.verdict.Reason
		if (reason == status.AlreadyExists || reason == status.OwnedByAnother) && o.former.Reason != reason {
			r.about(o, status.Outcome{Action: status.Conflicted, Reason: reason})
		}
		contention := o.contention()
		if contention != "" && !o.memory.isContended {
			r.about(o, status.Outcome{Action: status.ContentionBegan, Reason: contention})
		}
		o.memory.isContended = contention != ""
	}
}
