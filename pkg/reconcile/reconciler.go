package reconcile

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/apply"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/pkg/observer"
)

// conflictDelay is how long to wait for the version that was in the way.
const conflictDelay = 100 * time.Millisecond

// Applications is where the Applications are stored.
type Applications interface {
	// Get gives the Application, never one older than what Update has written,
	// or nil if there is none.
	Get(ctx context.Context, name types.NamespacedName) (*application.Application, error)
	// Update stores what belongs to the agent, if it differs from what is stored.
	// That somebody else has written meanwhile is an error.
	Update(ctx context.Context, app *application.Application) error
	// Delete deletes the Application, as a user would.
	Delete(ctx context.Context, app *application.Application) error
}

// Cluster is where the objects of the Applications live.
type Cluster interface {
	Create(ctx context.Context, ref manifest.Ref, object map[string]any) (live map[string]any, err error)
	Patch(ctx context.Context, ref manifest.Ref, live map[string]any, repair apply.Repair) (after map[string]any, err error)
	Delete(ctx context.Context, ref manifest.Ref, proof apply.Proof) (left map[string]any, err error)
}

// Clusters gives the cluster as somebody acts there.
type Clusters interface {
	// As gives the cluster of which an account is the writer, the agent itself if
	// the account is the zero value. That there is no such account is ErrNoAccount.
	As(ctx context.Context, account Account) (Cluster, error)
}

// Account is a service account on the target.
type Account struct{ Namespace, Name string }

// ErrNoAccount is the error of an account that is not there.
var ErrNoAccount = errors.New("there is no such service account on the target")

// Observers watch the objects of the Applications.
type Observers interface {
	Observe(owner observer.Owner, targets []observer.Target) []observer.Observation
	Strays(owner observer.Owner) []observer.Stray
	Start(owner observer.Owner, targets []observer.Target, seen []map[string]any)
	Stop(owner observer.Owner)
}

// Kinds finds where the target serves a kind. That it is not served is an error
// for which meta.IsNoMatchError holds; the Application is notified when that may
// have changed.
type Kinds interface {
	Locate(asking types.NamespacedName, id manifest.ID) (mutate.Object, error)
}

// Reconciler reconciles the Applications of one cluster.
type Reconciler struct {
	// ClusterName is the target cluster; Applications of others are left alone.
	ClusterName string
	// Scope is how far an Application may reach.
	Scope        mutate.Scope
	Applications Applications
	Clusters     Clusters
	Observers    Observers
	Kinds        Kinds
	// Target identifies the target, whatever its name: the UID of its namespace
	// kube-system. nil: not known.
	Target func() types.UID
	// RequireAccount has everything on the target written by a service account of
	// the Application's namespace there: application.DefaultServiceAccount if it
	// names none.
	RequireAccount bool
	// Namespaces are where the objects of Applications are on the target.
	Namespaces Namespaces
	// Secrets makes what the Secrets of hooks hold; nil: Applications with hooks are
	// refused.
	Secrets Secrets
	// Shutdowns asks Applications to shut down; nil: nobody does.
	Shutdowns        Shutdowns
	ShutdownDefaults ShutdownDefaults
	// Sources fetches what is behind URLs; nil: Applications that name one are refused.
	Sources Sources
	// FieldManager is our own name in managedFields.
	FieldManager string
	// MaxHold bounds a hold on one object, from when it was first seen.
	MaxHold time.Duration
	// Report is told of everything that was done.
	Report func(*application.Application, Outcome)
	Now    func() time.Time

	memories memories
	hub      hub
	// histories are the turns of writes that tell of repairs only.
	histories turns
}

// Reconcile brings the cluster to what the Application says. The text of its
// error repeats nothing of what an API server says of an object's values.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	result, err := r.reconcile(ctx, request)
	switch {
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: conflictDelay}, nil // somebody was faster: look again
	case err != nil:
		return ctrl.Result{}, scrubbed{err}
	}
	return result, nil
}

func (r *Reconciler) reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	app, err := r.Applications.Get(ctx, request.NamespacedName)
	switch {
	case errors.Is(err, application.ErrFormat):
		return ctrl.Result{}, nil // of another version of this program: not ours to touch
	case err != nil:
		return ctrl.Result{}, err
	case app == nil:
		r.forget(request.NamespacedName)
		return ctrl.Result{}, nil
	case !app.IsCurrent():
		return r.leave(ctx, app)
	}
	known := r.memories.of(app)
	known.recall(app)
	if damaged := r.damages(app); len(damaged) > 0 {
		return ctrl.Result{}, r.damaged(ctx, app, damaged)
	}
	if app.Deleted {
		return r.delete(ctx, app)
	}
	forgetGoing(app)
	if app.Wishes.Mode == application.Suspend {
		return r.suspend(ctx, app)
	}
	return r.ensure(ctx, app, known)
}

// forget ends what there is to do about an Application that is gone.
func (r *Reconciler) forget(name types.NamespacedName) {
	r.Observers.Stop(name)
	r.abandoned(name)
	r.memories.forget(name)
}

// ensure is steps 4 to 7 of the reference's loop.
func (r *Reconciler) ensure(ctx context.Context, app *application.Application, known *memory) (ctrl.Result, error) {
	from := r.arrive(app, known)
	if app.Hooks.Completed {
		_, err := r.Complete(ctx, app)
		return ctrl.Result{}, err
	}
	if holds, result, err := r.fetch(ctx, app, known, from); !holds {
		return result, err
	}
	planned, err := r.plan(app, known)
	switch {
	case unanswered(err):
		from.undo(app)
		return ctrl.Result{}, r.unreachable(ctx, app, known, err)
	case err != nil:
		from.undo(app)
		return ctrl.Result{}, r.refused(ctx, app, err)
	}
	if waitsForFormer(app) {
		return ctrl.Result{}, r.awaitFormer(ctx, app, from)
	}
	pass := newPass(r, app, known, planned)
	pass.from = from
	switch observed, err := pass.observe(); {
	case err != nil:
		from.undo(app)
		return ctrl.Result{}, r.unreachable(ctx, app, known, err)
	case !observed:
		return ctrl.Result{}, nil // we are told when the objects are known
	}
	known.silentSince = time.Time{}
	defer pass.start()

	delta := pass.calculate()
	if err := pass.claim(ctx, &delta); err != nil {
		return ctrl.Result{}, err
	}
	// What was done is recorded even if not all of it could be done.
	pass.act(ctx, delta)
	return pass.record(ctx)
}

// damages gives the documents without which nothing can be done: what is held,
// and what is desired beyond the spec. The others are written anew.
func (r *Reconciler) damages(app *application.Application) []error {
	var found []error
	if err := app.Damaged[application.InventoryKey(app.Holder)]; err != nil {
		found = append(found, err)
	}
	if err := app.Damaged[application.LearnedKey]; err != nil && app.Status.ClusterName() == r.ClusterName {
		found = append(found, err)
	}
	return found
}

// damaged says that a document of ours cannot be read, and does nothing: what is
// held or desired is not known. Only somebody who may write the document helps.
func (r *Reconciler) damaged(ctx context.Context, app *application.Application, damaged []error) error {
	r.Observers.Stop(app.NamespacedName)
	r.memories.of(app).spec = "" // what changes from now on, nobody sees
	spec := app.Status.ObservedSpec
	r.conclude(app, findings{verdicts: []verdict{{reason: reasonUnreadable, message: explain(errors.Join(damaged...))}}})
	app.Status.ObservedSpec = spec
	return r.update(ctx, app)
}

// refused records why an Application is not carried out at all, which only
// another spec can change.
func (r *Reconciler) refused(ctx context.Context, app *application.Application, cause error) error {
	if !errors.Is(cause, errRefused) {
		return cause
	}
	reason := reasonRefused
	if errors.Is(cause, errUntranslatable) {
		reason = reasonInvalidTosca
	}
	// The status speaks of this spec from here on; the objects are not as it says.
	app.Status.Objects = slices.Clone(app.Status.Objects)
	for i := range app.Status.Objects {
		app.Status.Objects[i].Reason, app.Status.Objects[i].Message, app.Status.Objects[i].Fields = reason, "", nil
	}
	r.conclude(app, findings{verdicts: []verdict{{reason: reason, message: explain(cause)}}})
	return r.update(ctx, app)
}

// suspend stops to look at the objects of an Application.
func (r *Reconciler) suspend(ctx context.Context, app *application.Application) (ctrl.Result, error) {
	r.Observers.Stop(app.NamespacedName)
	r.memories.of(app).spec = "" // what changes from now on, nobody sees
	r.suspended(app)
	return ctrl.Result{}, r.update(ctx, app)
}

// update stores the Application, and with it what had to wait so far: recalled
// once more, it would take the place of something newer.
func (r *Reconciler) update(ctx context.Context, app *application.Application) error {
	if err := r.store(ctx, app); err != nil {
		return err
	}
	r.memories.of(app).stored()
	return nil
}

// store writes the Application. What becomes of that tells how the hub is.
func (r *Reconciler) store(ctx context.Context, app *application.Application) error {
	err := r.Applications.Update(ctx, app)
	r.hub.answered(err, r.Now())
	return err
}
