package habitat

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/habitat"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// replacements deletes the Pods of an older revision where the Habitat asks for that:
// a group that elects a leader is then replaced as a whole. Pods of the revision that
// is wanted stay, whatever was done to the StatefulSet in between.
type replacements struct{ *shared }

func (r *replacements) add(mgr manager.Manager) error {
	isOnDelete := predicate.NewPredicateFuncs(func(object client.Object) bool {
		set, ok := object.(*appsv1.StatefulSet)
		return ok && set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("habitat-replacements").
		For(&appsv1.StatefulSet{}, builder.WithPredicates(isOnDelete)).
		// A Pod that comes late may be of the former revision.
		Watches(&corev1.Pod{}, handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &appsv1.StatefulSet{}, handler.OnlyControllerOwner()),
			builder.WithPredicates(comesOrGoes)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler, for a StatefulSet.
func (r *replacements) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	live := newHabitat()
	if err := r.client.Get(ctx, request.NamespacedName, live); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if habitat.CustomVersionOf(live.Object) != habitat.V1beta2 || live.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, nil
	}
	h, refusals := habitat.Parse(live.Object)
	if len(refusals) > 0 || h.Spec.UpdateStrategy != habitat.OnDelete {
		return reconcile.Result{}, nil
	}
	var set appsv1.StatefulSet
	if err := r.client.Get(ctx, request.NamespacedName, &set); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	settled, err := r.isSettled(ctx, h, &set)
	if err != nil || !settled {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.replace(ctx, h, &set)
}

// isSettled tells if the StatefulSet is ours, is what the Habitat says, and its
// controller has seen it so: only then its update revision is the one that is wanted.
func (r *replacements) isSettled(ctx context.Context, h habitat.Habitat, set *appsv1.StatefulSet) (bool, error) {
	if set.Status.ObservedGeneration != set.Generation || set.Status.UpdateRevision == "" || set.DeletionTimestamp != nil {
		return false, nil
	}
	owner := types.NamespacedName{Namespace: h.Namespace, Name: applicationPrefix + h.Name}
	cm, err := r.stored(ctx, owner)
	if err != nil || cm == nil {
		return false, err
	}
	wanted := h.Workload(r.filesImage)
	id, err := manifest.Identify(wanted)
	if err != nil {
		return false, err
	}
	fields, err := schema.Default(wanted)
	if err != nil {
		return false, err
	}
	live, err := runtime.DefaultUnstructuredConverter.ToUnstructured(set)
	if err != nil {
		return false, err
	}
	live["apiVersion"], live["kind"] = id.APIVersion, id.Kind // which caches leave out
	return application.Marks(owner, cm.UID, id).Prove(live) && len(fields.Compare(wanted, live)) == 0, nil
}

// replace deletes the Pods of other revisions.
func (r *replacements) replace(ctx context.Context, h habitat.Habitat, set *appsv1.StatefulSet) error {
	var pods corev1.PodList
	if err := r.client.List(ctx, &pods, client.InNamespace(set.Namespace), client.MatchingLabels{habitat.NameLabel: h.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	deleted := 0
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !isOutdated(pod, set) {
			continue
		}
		err := r.client.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}},
			client.Preconditions{UID: &pod.UID})
		switch {
		case apierrors.IsNotFound(err), apierrors.IsConflict(err): // it is another one by now
		case err != nil:
			return err
		default:
			deleted++
		}
	}
	if deleted > 0 {
		r.recorder.normal(regarding(h.NamespacedName, h.UID), nil, "PodsReplaced",
			fmt.Sprintf("%d Pods of an older revision are replaced by such of %s", deleted, set.Status.UpdateRevision))
	}
	return nil
}

func isOutdated(pod *corev1.Pod, set *appsv1.StatefulSet) bool {
	return metav1.IsControlledBy(pod, set) && pod.DeletionTimestamp == nil &&
		pod.Labels[appsv1.ControllerRevisionHashLabelKey] != set.Status.UpdateRevision
}
