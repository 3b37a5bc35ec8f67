package reconcile

import (
	"maps"
	"slices"
	"time"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/observer"
	"github.com/krake-observer/krake-observer/pkg/plan"
	"github.com/krake-observer/krake-observer/pkg/status"
)

// pass is one walk through the loop for one Application that is to be here.
type pass struct {
	// stored is the Application as it was read, which nothing changes. app is the working
	// copy, which the record phase writes.
	stored, app *application.Application
	// isArriving: another agent wrote the documents.
	isArriving bool
	setting    *setting
	memory     *memory
	target     *actor
	// spec is the digest of the Application's spec.
	spec    string
	objects []*object
	// secrets are those of the hooks, which are not watched, but read now and then.
	secrets []*hookSecret
	// isObserved: the observers know all objects, and events are due to be started again.
	isObserved bool
	// seen are the objects that were read or written.
	seen  []map[string]any
	delta delta
	// leaving are the objects that left the spec and are not gone yet, failure what went
	// wrong with those.
	leaving []leavingObject
	failure error
	// lost is the error of a target that does not answer.
	lost error
	// hasReverted: a drift was repaired.
	hasReverted bool
}

// delta is what has to be done (step 4): objects in the order of creation, and in the
// opposite order those that are held and not wanted any more.
type delta struct {
	missing, differing []*object
	unwanted           []manifest.ID
}

// newPass begins a pass. What another API server has assigned is not to be desired here,
// and what another agent says may be wrong: the documents of an Application that arrives
// are left out of the working copy, and stay stored until our own replace them.
func newPass(stored *application.Application, known *memory, cluster string) *pass {
	app := stayingOf(stored)
	isHere := app.Status.ClusterName() == cluster
	arrives := !isHere || !app.Vouched && !known.recorded
	if arrives {
		app.Damaged = maps.Clone(app.Damaged)
		delete(app.Damaged, application.LearnedKey)
		app.Learned, app.LastObserved = nil, application.Published{}
		if !isHere {
			app.Status = application.Status{}.On(cluster)
		}
	}
	return &pass{stored: stored, app: app, isArriving: arrives, memory: known, spec: app.Spec.Digest()}
}

// early returns the working copy as a pass writes it that ends before the objects are
// known: documents of another agent stay what they are.
func (p *pass) early() *application.Application {
	app := *p.app
	if p.isArriving {
		app.Learned, app.LastObserved, app.Status.Cluster = p.stored.Learned, p.stored.LastObserved, p.stored.Status.Cluster
	}
	return &app
}

// unarrived returns the working copy with documents and status as they are stored, for a
// write that does not change them.
func (p *pass) unarrived() *application.Application {
	app := p.early()
	if p.isArriving {
		app.Status = p.stored.Status
	}
	return app
}

// targets are the objects that observers watch.
func (p *pass) targets() []observer.Target {
	targets := make([]observer.Target, 0, len(p.objects))
	for _, o := range p.objects {
		if o.plan.Unserved == nil {
			targets = append(targets, o.target())
		}
	}
	return targets
}

// isHookSecret reports whether an object is one of the Secrets that the hooks want.
func (p *pass) isHookSecret(id manifest.ID) bool {
	return slices.ContainsFunc(p.secrets, func(secret *hookSecret) bool { return plan.IsSame(secret.plan.ID, id) })
}

// verdicts are those on objects of the spec, and on others that are not as they should be.
func (p *pass) verdicts() []status.Verdict {
	verdicts := make([]status.Verdict, 0, len(p.objects)+len(p.leaving))
	for _, o := range p.objects {
		v := o.verdict
		v.Object = o.plan.ID
		verdicts = append(verdicts, v)
	}
	for _, object := range p.leaving {
		if object.Reason != "" {
			verdicts = append(verdicts, object.Verdict)
		}
	}
	for _, secret := range p.secrets {
		if v := secret.verdict; v.Reason != "" {
			v.Object = secret.plan.ID
			verdicts = append(verdicts, v)
		}
	}
	return verdicts
}

// progress is the result of a phase: the pass goes on, or ends, and is made again after a
// time; 0: not before an event.
type progress struct {
	ended bool
	again time.Duration
}

func goOn() progress                       { return progress{} }
func endWith(again time.Duration) progress { return progress{ended: true, again: again} }

// draftOf returns a working copy of an Application. Lists and maps in it are replaced, never
// changed, but for the conditions, which are its own.
func draftOf(stored *application.Application) *application.Application {
	draft := *stored
	draft.Status.Conditions = slices.Clone(stored.Status.Conditions)
	return &draft
}

// stayingOf returns a working copy of an Application that stays: it is asked anew once it is
// to go. What it has said of its work counts for as long as it has the hook.
func stayingOf(stored *application.Application) *application.Application {
	app := draftOf(stored)
	app.Hooks.Shutdown = nil
	app.Hooks.Completed = app.Hooks.Completed && app.Spec.Hooks.Complete
	return app
}
