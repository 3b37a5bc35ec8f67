package reconcile

import (
	"maps"
	"slices"
	"time"

	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/observer"
)

// pass is one run of the loop for one Application that belongs to this cluster.
type pass struct {
	// published is the Application as it was read. stored is published with the pending status.
	// Neither of them changes. app is the working copy, which the record phase writes.
	published, stored, app *application.Application
	// isArriving reports that another agent wrote the documents.
	isArriving bool
	inputs     *inputs
	memory     *memory
	target     *actor
	// spec is the digest of the Application's spec.
	spec    string
	objects []*object
	// secrets are the Secrets of the hooks. They are not watched, but read at intervals.
	secrets []*hookSecret
	// isObserved reports that the observers know all objects, and that event delivery has to be
	// resumed.
	isObserved bool
	// seen are the objects that were read or written.
	seen  []map[string]any
	delta delta
	// unrecorded are objects with our marks that are in neither manifest nor inventory.
	unrecorded []manifest.ID
	// leaving are the objects that left the spec and still exist. failure is the error of their
	// removal.
	leaving []leavingObject
	failure error
	// lost is the error of a target that does not answer.
	lost error
}

// delta is the result of the comparison (step 4). It has objects in the order of creation, and the
// recorded but unwanted objects in the opposite order.
type delta struct {
	missing, differing []*object
	unwanted           []manifest.ID
}

// newPass begins a pass. Values that another API server assigned are not desired here, and the
// documents of another agent may be wrong. For an Application that arrives from another cluster,
// the working copy therefore has no documents. They stay stored until our own replace them.
func newPass(published, stored *application.Application, known *memory, cluster string) *pass {
	app := stayingOf(stored)
	isHere := app.Status.ClusterName() == cluster
	arrives := !isHere || !app.DocumentsAreOurs && !known.recorded
	if arrives {
		app.Damaged = maps.Clone(app.Damaged)
		delete(app.Damaged, application.LearnedKey)
		app.Learned, app.LastObserved = nil, application.Published{}
		if !isHere {
			app.Status = application.Status{}.On(cluster)
		}
	}
	return &pass{published: published, stored: stored, app: app, isArriving: arrives, memory: known, spec: app.Spec.Digest()}
}

// early returns the working copy for a pass that ends before the objects are known. The documents
// of another agent stay unchanged.
func (p *pass) early() *application.Application {
	app := *p.app
	if p.isArriving {
		app.Learned, app.LastObserved, app.Status.Cluster = p.stored.Learned, p.stored.LastObserved, p.stored.Status.Cluster
	}
	return &app
}

// unarrived returns the working copy with the stored documents and status, for a write that does
// not change them.
func (p *pass) unarrived() *application.Application {
	app := p.early()
	if p.isArriving {
		app.Status = p.stored.Status
	}
	return app
}

// targets returns the objects for the observers.
func (p *pass) targets() []observer.Target {
	targets := make([]observer.Target, 0, len(p.objects))
	for _, o := range p.objects {
		if o.isWatched() {
			targets = append(targets, o.target())
		}
	}
	return targets
}

// isHookSecret reports whether an object is a Secret that the hooks need.
func (p *pass) isHookSecret(id manifest.ID) bool {
	return slices.ContainsFunc(p.secrets, func(secret *hookSecret) bool { return plan.IsSame(secret.plan.ID, id) })
}

// verdicts returns the verdicts on objects of the spec, and on others with a problem.
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

// progress is the result of a phase. The pass continues, or it ends and runs again after a time,
// where 0 means at the next event.
type progress struct {
	ended bool
	again time.Duration
}

func goOn() progress                       { return progress{} }
func endWith(again time.Duration) progress { return progress{ended: true, again: again} }

// draftOf returns a working copy of an Application. Its lists and maps may be replaced, but not
// changed. Only the conditions are a deep copy.
func draftOf(stored *application.Application) *application.Application {
	draft := *stored
	draft.Status.Conditions = slices.Clone(stored.Status.Conditions)
	return &draft
}

// stayingOf returns a working copy of an Application that stays. When it has to leave, it is asked
// again. Its report that its work is done counts while it has the hook.
func stayingOf(stored *application.Application) *application.Application {
	app := draftOf(stored)
	app.Hooks.Shutdown = nil
	app.Hooks.Completed = app.Hooks.Completed && app.Spec.Hooks.Complete
	return app
}
