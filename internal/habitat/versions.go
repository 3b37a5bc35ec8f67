package habitat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/krake-observer/krake-observer/pkg/habitat"
)

// shared is what all controllers have.
type shared struct {
	// client reads from the caches, live does not.
	client   client.Client
	live     client.Reader
	recorder recorder

	cluster    string
	filesImage string
	recheck    time.Duration
	now        func() time.Time
}

const (
	// workers is how many Habitats, or namespaces, each controller works on at once.
	workers = 4
	// firstRetry and lastRetry are between what waits that has failed.
	firstRetry = 200 * time.Millisecond
	lastRetry  = 30 * time.Second
	// conflictPause is how long a cache that is behind is waited for.
	conflictPause = 50 * time.Millisecond
)

// work is how each controller works.
func work() controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	}
}

// ended is how a pass ends: one that was made with what is not so any more is made
// again, and is no failure.
func ended(result reconcile.Result, err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictPause}, nil
	}
	return result, err
}

// version is the controller of the Habitats of one custom version. There is one for
// those versions of which nobody knows what they mean, to say so.
type version struct {
	*shared

	name string
	// has tells whether a custom version is this controller's.
	has func(customVersion string) bool
	// judge says what becomes of a Habitat.
	judge func(ctx context.Context, live *unstructured.Unstructured) (verdict, *corev1.ConfigMap, error)
}

// addVersions adds one controller for each custom version, and one for all others.
func (s *shared) addVersions(mgr manager.Manager) error {
	is := func(wanted string) func(string) bool { return func(name string) bool { return name == wanted } }
	return errors.Join(
		(&version{s, "habitat-" + habitat.V1beta1, is(habitat.V1beta1), s.carryOut}).add(mgr),
		(&version{s, "habitat-" + habitat.V1beta2, is(habitat.V1beta2), s.carryOut}).add(mgr),
		(&version{s, "habitat-unknown", func(name string) bool { return !isKnown(name) }, s.refuseVersion}).add(mgr),
	)
}

func (v *version) add(mgr manager.Manager) error {
	mine := predicate.NewPredicateFuncs(func(object client.Object) bool {
		live, ok := object.(*unstructured.Unstructured)
		return ok && v.has(habitat.CustomVersionOf(live.Object))
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named(v.name).
		For(newHabitat(), builder.WithPredicates(mine, predicate.GenerationChangedPredicate{})).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(v.concerned), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(newSecret(), handler.EnqueueRequestsFromMapFunc(v.wanting), builder.WithPredicates(comesOrGoes)).
		WithOptions(work()).
		Complete(v)
}

// comesOrGoes lets through that there is an object, or none any more.
var comesOrGoes = predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}

// concerned gives the Habitats to which a ConfigMap belongs: one, or all of the
// namespace.
func (v *version) concerned(ctx context.Context, object client.Object) []reconcile.Request {
	switch name := object.GetName(); name {
	case peersApplication, habitat.PeerFile:
		return v.requests(ctx, client.InNamespace(object.GetNamespace()))
	default:
		if name, ok := strings.CutPrefix(name, applicationPrefix); ok {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
		}
	}
	return nil
}

// wanting gives the Habitats that name a Secret.
func (v *version) wanting(ctx context.Context, secret client.Object) []reconcile.Request {
	return v.requests(ctx, client.InNamespace(secret.GetNamespace()), client.MatchingFields{secretsIndex: secret.GetName()})
}

func (v *version) requests(ctx context.Context, options ...client.ListOption) []reconcile.Request {
	found, err := v.habitats(ctx, options...)
	if err != nil { // every Habitat is looked at again in a while
		ctrl.LoggerFrom(ctx).Error(err, "list Habitats")
		return nil
	}
	var requests []reconcile.Request
	for i := range found {
		if v.has(habitat.CustomVersionOf(found[i].Object)) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&found[i])})
		}
	}
	return requests
}

// habitats reads Habitats, which are the cache's own and must not be changed.
func (s *shared) habitats(ctx context.Context, options ...client.ListOption) ([]unstructured.Unstructured, error) {
	list := newHabitatList()
	err := s.client.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...)
	return list.Items, err
}

// verdict is what the controller makes of a Habitat.
type verdict struct {
	reason, message string
	// acted is what was done with the Application.
	acted done
}

func (v verdict) status() metav1.ConditionStatus {
	if v.reason == reasonAccepted {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// Reconcile implements reconcile.Reconciler.
func (v *version) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	live := newHabitat()
	err := v.client.Get(ctx, request.NamespacedName, live)
	switch {
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, err
	case !v.has(habitat.CustomVersionOf(live.Object)), live.GetDeletionTimestamp() != nil:
		return reconcile.Result{}, nil // another controller's; or the garbage collector's
	}
	judged, cm, err := v.judge(ctx, live)
	if err == nil {
		err = v.report(ctx, live, judged, cm)
	}
	return ended(reconcile.Result{RequeueAfter: wait.Jitter(v.recheck, recheckJitter)}, err)
}

// recheckJitter keeps what was looked at together from being looked at together again.
const recheckJitter = 0.1

// refuseVersion says that nobody carries this Habitat out. What was made of it by a
// program that knew the version stays as it is.
func (s *shared) refuseVersion(_ context.Context, live *unstructured.Unstructured) (verdict, *corev1.ConfigMap, error) {
	return verdict{reason: reasonUnknownVersion, message: fmt.Sprintf(
		"there is no controller for customVersion %q: there are %s and %s (deprecated)", cutName(habitat.CustomVersionOf(live.Object)), habitat.V1beta2, habitat.V1beta1)}, nil, nil
}

func cutName(name string) string {
	const most = 63
	if len(name) > most {
		return strings.ToValidUTF8(name[:most], "") + "..."
	}
	return name
}

// carryOut brings the Application of a Habitat to what the Habitat says.
func (s *shared) carryOut(ctx context.Context, live *unstructured.Unstructured) (verdict, *corev1.ConfigMap, error) {
	name := types.NamespacedName{Namespace: live.GetNamespace(), Name: applicationPrefix + live.GetName()}
	h, refusals := habitat.Parse(live.Object)
	if len(refusals) > 0 {
		return s.left(ctx, name, live, reasonValidationFailed, refusals.ToAggregate().Error())
	}
	missing, err := s.missing(ctx, h)
	if err != nil {
		return verdict{}, nil, err
	}
	if len(missing) > 0 {
		return s.left(ctx, name, live, reasonSecretMissing, "create Secret "+strings.Join(missing, ", and "))
	}
	wanted, err := s.applicationOf(h)
	if err != nil {
		return s.left(ctx, name, live, reasonValidationFailed, err.Error())
	}
	cm, acted, err := s.ensure(ctx, wanted, func(stored *corev1.ConfigMap) error {
		if err := mine(h)(stored); err != nil {
			return err
		}
		return s.isPossible(ctx, h, stored)
	})
	return judgeWrite(cm, acted, name, err)
}

// immutableError is that a Habitat asks for what its workload cannot become.
type immutableError struct{ error }

// judgeWrite says what it means that an Application could, or could not, be written.
// What trying again may mend is an error.
func judgeWrite(cm *corev1.ConfigMap, acted done, name types.NamespacedName, err error) (verdict, *corev1.ConfigMap, error) {
	var immutable immutableError
	switch {
	case err == nil:
		return verdict{reason: reasonAccepted, acted: acted}, cm, nil
	case errors.Is(err, errTaken):
		return verdict{reason: reasonNameTaken, message: "ConfigMap " + name.Name + " belongs to somebody else: delete or rename it, or give the Habitat another name"}, nil, nil
	case errors.Is(err, errGoing):
		return verdict{reason: reasonGoing, message: "ConfigMap " + name.Name + " is that of a former Habitat: it is waited for until it is gone"}, nil, nil
	case errors.As(err, &immutable):
		return verdict{reason: reasonImmutable, message: immutable.Error()}, cm, nil
	case isRefusal(err):
		return verdict{reason: reasonRefused, message: "ConfigMap " + name.Name + ": " + err.Error()}, cm, nil
	}
	return verdict{}, nil, err
}

// isRefusal tells of answers that stay the same until somebody changes something.
func isRefusal(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

// left is the verdict on a Habitat whose Application stays as it is.
func (s *shared) left(ctx context.Context, name types.NamespacedName, live *unstructured.Unstructured, reason, message string) (verdict, *corev1.ConfigMap, error) {
	cm, err := s.stored(ctx, name)
	if err != nil {
		return verdict{}, nil, err
	}
	if cm != nil && !metav1.IsControlledBy(cm, live) {
		cm = nil
	}
	return verdict{reason: reason, message: message}, cm, nil
}

// missing gives the Secrets that a Habitat names and that are not there.
func (s *shared) missing(ctx context.Context, h habitat.Habitat) ([]string, error) {
	var missing []string
	for _, secret := range h.Secrets() {
		err := s.client.Get(ctx, types.NamespacedName{Namespace: h.Namespace, Name: secret.Name}, newSecret())
		switch {
		case apierrors.IsNotFound(err):
			missing = append(missing, describe(secret))
		case err != nil:
			return nil, err
		}
	}
	return missing, nil
}

func describe(secret habitat.Secret) string {
	text := fmt.Sprintf("%q (%s)", secret.Name, secret.Path)
	if secret.Key != "" {
		text = fmt.Sprintf("%q with key %s (%s)", secret.Name, secret.Key, secret.Path)
	}
	return text
}
