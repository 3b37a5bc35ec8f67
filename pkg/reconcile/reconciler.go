package reconcile

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/apply"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/pkg/observer"
)

const (
	// deletionCheck is how long to wait for objects that a finalizer holds.
	deletionCheck = 2 * time.Second
	// conflictDelay is how long to wait for the version that was in the way.
	conflictDelay = 100 * time.Millisecond
)

// Applications is where the Applications are stored.
type Applications interface {
	// Get gives the Application, never one older than what Update has written,
	// or nil if there is none.
	Get(ctx context.Context, name types.NamespacedName) (*application.Application, error)
	// Update stores what belongs to the agent, if it differs from what is stored.
	// That somebody else has written meanwhile is an error.
	Update(ctx context.Context, app *application.Application) error
}

// Cluster is where the objects of the Applications live.
type Cluster interface {
	Create(ctx context.Context, ref manifest.Ref, object map[string]any) (live map[string]any, err error)
	Patch(ctx context.Context, ref manifest.Ref, live map[string]any, repair apply.Repair) (after map[string]any, err error)
	Delete(ctx context.Context, ref manifest.Ref, proof apply.Proof) (gone bool, err error)
}

// Observers watch the objects of the Applications.
type Observers interface {
	Observe(owner observer.Owner, targets []observer.Target) ([]observer.Observation, error)
	Start(owner observer.Owner, targets []observer.Target, seen []map[string]any)
	Stop(owner observer.Owner)
}

// Reconciler reconciles the Applications of one cluster.
type Reconciler struct {
	// ClusterName is the target cluster; Applications of others are left alone.
	ClusterName string
	// Scope is how far an Application may reach.
	Scope        mutate.Scope
	Applications Applications
	Cluster      Cluster
	Observers    Observers
	Mapper       meta.RESTMapper
	// FieldManager is our own name in managedFields.
	FieldManager string
	// Report is told of everything that was done.
	Report func(*application.Application, Outcome)
	Now    func() time.Time
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
		r.Observers.Stop(request.NamespacedName)
		return ctrl.Result{}, nil
	case app.Cluster != r.ClusterName:
		return ctrl.Result{}, nil
	case app.Deleted:
		return r.delete(ctx, app)
	}
	return r.ensure(ctx, app)
}

// ensure is steps 4 to 7 of the reference's loop.
func (r *Reconciler) ensure(ctx context.Context, app *application.Application) (ctrl.Result, error) {
	planned, err := r.plan(app)
	if err != nil {
		return ctrl.Result{}, r.failed(ctx, app, err)
	}
	observed, err := r.Observers.Observe(app.NamespacedName, targetsOf(planned))
	if errors.Is(err, observer.ErrNotSynced) {
		return ctrl.Result{}, nil // we are told when it is
	}
	if err != nil {
		return ctrl.Result{}, r.failed(ctx, app, err)
	}
	pass := &pass{Reconciler: r, app: app, planned: planned, observed: observed}
	defer pass.start()

	delta := Calculate(idsOf(planned), observed, app.Inventory)
	if err := pass.claim(ctx, delta); err != nil {
		return ctrl.Result{}, err
	}
	// What was done is recorded even if not all of it could be done.
	acted := pass.act(ctx, delta)
	err = errors.Join(acted, pass.record(ctx, acted))
	if err == nil && len(pass.kept) > 0 {
		return ctrl.Result{RequeueAfter: deletionCheck}, nil
	}
	return ctrl.Result{}, err
}

// failed records why an Application is not carried out. Nothing is tried again
// by itself where only another spec can help. A cluster that does not answer
// says nothing about the Application: that is tried again, and not recorded.
func (r *Reconciler) failed(ctx context.Context, app *application.Application, cause error) error {
	if unanswered(cause) {
		return cause
	}
	r.setCondition(app, cause)
	if err := r.Applications.Update(ctx, app); err != nil {
		return errors.Join(cause, err)
	}
	if errors.Is(cause, errRefused) {
		return nil
	}
	return cause
}
