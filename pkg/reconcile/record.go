package reconcile

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/krake-observer/krake-observer/internal/health"
	"github.com/krake-observer/krake-observer/internal/pacing"
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// recordPhase writes the results of the pass (step 7), and decides when to look again. It writes
// nothing if they are already stored.
type recordPhase struct {
	statusWriter statusWriter
	limiter      *pacing.StatusWriteLimiter
	report       func(*application.Application, status.Outcome)
}

func (r recordPhase) run(ctx context.Context, p *pass) (progress, error) {
	publish(p)
	r.describe(p)
	now, app, known := r.statusWriter.hub.now(), p.app, p.memory
	known.spec, known.recorded = p.spec, true

	failure := failuresOf(p)
	urgency := pacing.Urgent
	if !known.writes.IsFirst() {
		urgency = status.UrgencyOf(p.published, app)
	}
	due := known.writes.Delay(urgency, r.limiter, now)
	switch rest := r.statusWriter.hub.outage.Reserve(now); {
	case rest > 0: // otherwise all Applications would wait for the hub
		known.pending.Store(app)
		return endWith(wakeAfter(p, rest)), failure
	case failure == nil && due > 0 && !mustWrite(p):
		known.pending.Store(app)
		return endWith(wakeAfter(p, due)), nil
	}
	before := app.Version
	err := r.statusWriter.hub.update(ctx, app, known)
	switch {
	case err != nil:
		// Only this working copy describes the target, even if its spec has been replaced in the
		// meantime. It is written as soon as possible.
		known.pending.Store(app)
		known.writes.RecordFailure()
	case app.Version != before:
		known.writes.RecordWrite(urgency, r.statusWriter.hub.now())
		recordPublished(p)
	default:
		known.writes.RecordStored()
		recordPublished(p)
	}
	return endWith(wakeAfter(p, 0)), errors.Join(failure, err)
}

// describe records the findings of the pass in the working copy.
func (r recordPhase) describe(p *pass) {
	app := p.app
	app.Inventory = inventoryOf(p)
	app.Adopted = slices.DeleteFunc(slices.Clone(app.Inventory), func(id manifest.ID) bool { return !plan.Contains(app.Adopted, id) })
	p.memory.keep(app.Inventory)
	(&reporter{app: app, report: r.report}).beginnings(p.objects)
	found := findingsOf(p)
	p.memory.contended.Store(int64(found.Contended()))
	r.statusWriter.conclude(app, found)
	app.Status.Objects = objectsOf(p, found.Verdicts)
	app.Status.Services = servicesOf(p)
	app.Status.ContainerHealth = found.ContainerHealth()
}

func findingsOf(p *pass) status.Findings {
	found := status.Findings{Verdicts: p.verdicts(), Unrecorded: p.unrecorded}
	for _, o := range p.objects {
		var rewritten []schema.Path
		for _, form := range o.plan.Forms {
			if !form.IsDefault() {
				rewritten = append(rewritten, form.Path)
			}
		}
		found.AddObject(o.plan.ID, o.health(), rewritten, o.contention())
	}
	return found
}

// objectsOf returns the status of each object. The verdicts on objects of the spec are first in the
// list.
func objectsOf(p *pass, verdicts []status.Verdict) []application.ObjectStatus {
	objects := make([]application.ObjectStatus, 0, len(verdicts))
	for i, v := range verdicts {
		object := application.ObjectStatus{ID: v.Object, Reason: v.Reason, Message: v.Message}
		for _, path := range v.Fields {
			object.Fields = append(object.Fields, path.String())
		}
		if i < len(p.objects) {
			found := p.objects[i].health()
			object.Health, object.Hold, object.Ended = string(cmp.Or(found.Status, "NotFound")), p.objects[i].hold, p.objects[i].end()
			if v.Reason == "" && found.Status != health.StatusCurrent {
				object.Message = found.Message
			}
		}
		objects = append(objects, object)
	}
	return objects
}

// servicesOf returns the addresses of the Services.
func servicesOf(p *pass) map[string]string {
	var addresses map[string]string
	for _, o := range p.objects {
		if address := o.summary().Address; address != "" {
			if addresses == nil {
				addresses = map[string]string{}
			}
			addresses[o.plan.Name] = address
		}
	}
	return addresses
}

// mustWrite reports whether the working copy has facts that this process must not lose.
func mustWrite(p *pass) bool {
	return p.inputs.isNewSpec || !maps.Equal(p.app.Hooks.Tokens, p.stored.Hooks.Tokens)
}

func failuresOf(p *pass) error {
	failures := []error{UserFacing(p.failure)}
	for _, secret := range p.secrets {
		failures = append(failures, reported(secret.verdict))
	}
	for _, o := range p.objects {
		failures = append(failures, reported(o.verdict))
	}
	return errors.Join(failures...)
}

// reported returns the error of a verdict that the status has. It is [UserFacing], unless the
// administrator of the agent has to see it.
func reported(v status.Verdict) error {
	if v.Reason == status.Error {
		return v.Err
	}
	return UserFacing(v.Err)
}

// wakeAfter returns when to look again without an event, 0 for never. It is the time when a hold or
// a pause ends, contention is forgotten, a deletion may be complete, or a write is due.
func wakeAfter(p *pass, due time.Duration) time.Duration {
	soonest := due
	consider := func(at time.Time) {
		if wait := max(at.Sub(p.inputs.now), time.Millisecond); !at.IsZero() && (soonest == 0 || wait < soonest) {
			soonest = wait
		}
	}
	for _, o := range p.objects {
		consider(o.verdict.Again)
		consider(o.fillDue())
		_, forgotten := o.memory.contentions.Ongoing(p.inputs.now)
		consider(forgotten)
	}
	for _, object := range p.leaving {
		if object.patience > 0 {
			consider(p.inputs.now.Add(object.patience))
		}
	}
	for _, secret := range p.secrets {
		consider(secret.verdict.Again)
	}
	consider(secretKeeper{pass: p}.due())
	return soonest
}
