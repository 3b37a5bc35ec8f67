package habitat

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/habitat"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// peerFile is the name of the ConfigMap with the peer, and the key in it.
const peerFile = habitat.PeerFile

// peers writes the address of a running Pod to the peer file of each namespace.
type peers struct {
	*shared

	// chosen maps a namespace to the address that this process has chosen, or has found
	// at first. Another address in the file is not the choice of this process.
	chosen sync.Map
}

func (p *peers) add(mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("habitat-peers").
		Watches(&corev1.Pod{}, byNamespace()).
		// The Application proves that the file is ours.
		Watches(&corev1.ConfigMap{}, byNamespace(), builder.WithPredicates(predicate.Or(named(peerFile), named(peersApplication)))).
		WithOptions(controllerOptions()).
		Complete(p)
}

// Reconcile implements reconcile.Reconciler, for a namespace.
func (p *peers) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	namespace := request.Name
	app, file, err := p.peersOf(ctx, namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	if app == nil {
		p.chosen.Delete(namespace)
		return reconcile.Result{}, nil
	}
	again := reconcile.Result{RequeueAfter: recheck}
	if p.withoutFile(app, file) != "" {
		return again, nil
	}
	pods, err := p.pods(ctx, namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	current, has := file.Data[peerFile]
	address := current
	if former, known := p.chosen.Load(namespace); known {
		address, _ = former.(string)
	}
	chosen := habitat.ChoosePeer(address, pods)
	if !has || chosen != current {
		err = p.write(ctx, file, chosen)
	}
	if err == nil {
		p.chosen.Store(namespace, chosen)
	}
	return ended(again, err)
}

func (p *peers) pods(ctx context.Context, namespace string) ([]habitat.Pod, error) {
	var found corev1.PodList
	err := p.client.List(ctx, &found, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
	pods := make([]habitat.Pod, len(found.Items))
	for i := range found.Items {
		pod := &found.Items[i]
		pods[i] = habitat.Pod{
			Name: pod.Name, IP: pod.Status.PodIP,
			Running: pod.Status.Phase == corev1.PodRunning, Deleted: pod.DeletionTimestamp != nil,
		}
		if pod.Status.StartTime != nil {
			pods[i].Started = pod.Status.StartTime.Time
		}
	}
	return pods, err
}

// write sets the peer, unless the file has changed since it was read.
func (p *peers) write(ctx context.Context, file *corev1.ConfigMap, chosen string) error {
	after := file.DeepCopy()
	after.Data = merge(after.Data, map[string]string{peerFile: chosen})
	patch := client.MergeFromWithOptions(file, client.MergeFromWithOptimisticLock{})
	if err := p.client.Patch(ctx, after, patch, client.FieldOwner(Name)); err != nil {
		return client.IgnoreNotFound(err)
	}
	note := "no Pod of the namespace's Habitats runs"
	if chosen != "" {
		note = fmt.Sprintf("%s is the peer of the namespace's Habitats", chosen)
	}
	p.recorder.event(corev1.EventTypeNormal, configMapReference(file), nil, "PeerChosen", note)
	return nil
}

// peersOf reads the Application of the peer file, and the file. Each is nil if it does
// not exist.
func (s *shared) peersOf(ctx context.Context, namespace string) (app, file *corev1.ConfigMap, err error) {
	if app, err = s.stored(ctx, types.NamespacedName{Namespace: namespace, Name: peersApplication}); err != nil {
		return nil, nil, err
	}
	file, err = s.stored(ctx, types.NamespacedName{Namespace: namespace, Name: peerFile})
	return app, file, err
}

// withoutFile returns why there is no peer file that may be written, or "".
func (s *shared) withoutFile(app, file *corev1.ConfigMap) string {
	switch {
	case app == nil:
		return "there is no ConfigMap " + peersApplication + " yet"
	case errors.Is(checkPeersOwner(app), errTaken):
		return "ConfigMap " + peersApplication + " belongs to another owner: delete or rename it"
	case app.DeletionTimestamp != nil:
		return "ConfigMap " + peersApplication + " is being deleted: the agent waits until it is gone"
	case file == nil, !hasMarks(file.Annotations, app, manifest.ID{APIVersion: "v1", Kind: "ConfigMap", Namespace: file.Namespace, Name: file.Name}):
		return s.notCreated(app)
	case file.DeletionTimestamp != nil:
		return "ConfigMap " + peerFile + " is being deleted"
	case file.Immutable != nil && *file.Immutable:
		return "ConfigMap " + peerFile + " is immutable: delete it, and it is created again"
	}
	if _, taken := file.BinaryData[peerFile]; taken {
		return "ConfigMap " + peerFile + " has binaryData[" + peerFile + "]: remove it, or delete the ConfigMap, which is created again"
	}
	return ""
}

// notCreated returns why the agent has not created the peer file, in the agent's words.
func (s *shared) notCreated(app *corev1.ConfigMap) string {
	if app, err := application.ReadFor(app, s.cluster); err == nil {
		if ready := meta.FindStatusCondition(app.Status.Conditions, application.ReadyCondition); ready != nil && ready.Message != "" {
			return "ConfigMap " + peersApplication + ": " + ready.Message
		}
	}
	return "the agent has not made ConfigMap " + peerFile + " yet"
}
