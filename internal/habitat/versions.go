package habitat

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/krake-observer/krake-observer/pkg/habitat"
)

// version is the controller of the Habitats of one custom version, or of all unknown
// versions, whose Habitats it only reports about.
type version struct {
	*shared

	name string
}

const unknownVersions = "unknown"

// versions returns one controller for each custom version, and one for all others.
func (s *shared) versions() []*version {
	return []*version{{s, habitat.V1beta1}, {s, habitat.V1beta2}, {s, unknownVersions}}
}

func (v *version) has(live *unstructured.Unstructured) bool {
	name := habitat.CustomVersionOf(live.Object)
	return name == v.name || v.name == unknownVersions && !isKnown(name)
}

func (v *version) add(mgr manager.Manager) error {
	isOfVersion := predicate.NewPredicateFuncs(func(object client.Object) bool {
		live, ok := object.(*unstructured.Unstructured)
		return ok && v.has(live)
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("habitat-"+v.name).
		For(newHabitat(), builder.WithPredicates(isOfVersion, predicate.GenerationChangedPredicate{})).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(v.requestsOfConfigMap), builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		WithOptions(controllerOptions()).
		Complete(v)
}

// requestsOfConfigMap requests the Habitat of an Application, or all Habitats of the
// namespace for the peer file and its Application.
func (v *version) requestsOfConfigMap(ctx context.Context, cm client.Object) []reconcile.Request {
	name, isApplication := strings.CutPrefix(cm.GetName(), applicationPrefix)
	switch {
	case cm.GetName() == peersApplication, cm.GetName() == peerFile:
		return v.requests(ctx, client.InNamespace(cm.GetNamespace()))
	case isApplication:
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: cm.GetNamespace(), Name: name}}}
	}
	return nil
}

func (v *version) requests(ctx context.Context, options ...client.ListOption) []reconcile.Request {
	found, err := v.habitats(ctx, options...)
	if err != nil { // the next recheck finds the change
		ctrl.LoggerFrom(ctx).Error(err, "list Habitats")
		return nil
	}
	var requests []reconcile.Request
	for i := range found {
		if v.has(&found[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&found[i])})
		}
	}
	return requests
}

const (
	// recheckJitter spreads Habitats that were reconciled at the same time.
	recheckJitter = 0.1
	// secretsPause is the interval in which a missing Secret is looked for. Secrets are not watched,
	// because a client that watches Secrets sees all of them.
	secretsPause = 3 * time.Second
)

// Reconcile implements reconcile.Reconciler.
func (v *version) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	live := newHabitat()
	if err := v.client.Get(ctx, request.NamespacedName, live); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !v.has(live) || live.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, nil // another controller acts, or the garbage collector
	}
	judged, err := v.accept(ctx, live)
	if err == nil {
		err = v.report(ctx, live, judged)
	}
	again := recheck
	if judged.reason == reasonSecretNotFound {
		again = min(again, secretsPause)
	}
	return ended(reconcile.Result{RequeueAfter: wait.Jitter(again, recheckJitter)}, err)
}
