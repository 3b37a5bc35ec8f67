package habitat

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/krake-observer/krake-observer/pkg/habitat"
)

// replacements deletes the Pods of outdated revisions for the update strategy OnDelete,
// so that a group with an elected leader is replaced as a whole. Pods of the wanted
// revision stay, even if the StatefulSet had another revision in between.
type replacements struct{ *shared }

func (r *replacements) add(mgr manager.Manager) error {
	isOnDelete := predicate.NewPredicateFuncs(func(object client.Object) bool {
		set, ok := object.(*appsv1.StatefulSet)
		return ok && set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("habitat-replacements").
		For(&appsv1.StatefulSet{}, builder.WithPredicates(isOnDelete)).
		// A Pod that is created late may have the former revision.
		Watches(&corev1.Pod{}, handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &appsv1.StatefulSet{}, handler.OnlyControllerOwner()),
			builder.WithPredicates(isNewOrDeleted)).
		WithOptions(controllerOptions()).
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
	cm, err := r.stored(ctx, types.NamespacedName{Namespace: h.Namespace, Name: applicationPrefix + h.Name})
	if err != nil || cm == nil {
		return reconcile.Result{RequeueAfter: recheck}, err
	}
	outdated, revision, err := r.outdated(ctx, r.client, h, cm)
	if err == nil && len(outdated) > 0 {
		// The cache may have newer Pods than StatefulSets, so it does not suffice to delete any.
		outdated, revision, err = r.outdated(ctx, r.live, h, cm)
	}
	if err == nil {
		err = r.replace(ctx, h, outdated, revision)
	}
	return reconcile.Result{RequeueAfter: recheck}, err
}

// outdated returns the Pods of other revisions than the wanted one. It returns none
// until the StatefulSet is ours, has the spec of the Habitat, and its controller has
// observed that: only then its update revision is the wanted one.
func (r *replacements) outdated(ctx context.Context, from client.Reader, h habitat.Habitat, cm *corev1.ConfigMap) (outdated []*corev1.Pod, revision string, err error) {
	set, err := statefulSetOf(ctx, from, h, cm)
	if err != nil || set == nil || set.DeletionTimestamp != nil || set.Status.ObservedGeneration != set.Generation || set.Status.UpdateRevision == "" {
		return nil, "", err
	}
	found, err := differences(h, r.filesImage, set)
	if err != nil || len(found) > 0 {
		return nil, "", err
	}
	var pods corev1.PodList
	if err := r.client.List(ctx, &pods, client.InNamespace(set.Namespace), client.MatchingLabels{habitat.NameLabel: h.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, "", err
	}
	revision = set.Status.UpdateRevision
	for i := range pods.Items {
		pod := &pods.Items[i]
		if metav1.IsControlledBy(pod, set) && pod.DeletionTimestamp == nil && pod.Labels[appsv1.ControllerRevisionHashLabelKey] != revision {
			outdated = append(outdated, pod)
		}
	}
	return outdated, revision, nil
}

// replace deletes Pods. Their StatefulSet creates them again.
func (r *replacements) replace(ctx context.Context, h habitat.Habitat, pods []*corev1.Pod, revision string) error {
	deleted := 0
	for _, pod := range pods {
		err := r.client.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}},
			client.Preconditions{UID: &pod.UID})
		switch {
		case apierrors.IsNotFound(err), apierrors.IsConflict(err): // it has been replaced already
		case err != nil:
			return err
		default:
			deleted++
		}
	}
	if deleted > 0 {
		r.recorder.event(corev1.EventTypeNormal, habitatReference(h.NamespacedName, h.UID), nil, "PodsReplaced",
			fmt.Sprintf("%d Pods of an older revision are replaced by such of %s", deleted, revision))
	}
	return nil
}
