package habitat

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
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

// peerFile is the ConfigMap with the peer, and the key in it.
const peerFile = habitat.PeerFile

// peers keeps the address of a Pod that runs in the peer file of each namespace.
type peers struct {
	*shared

	mu sync.Mutex
	// chosen has the address that this process has chosen, or found, by namespace.
	// Another one that is in the file is somebody else's choice.
	chosen map[string]string
}

func newPeers(s *shared) *peers { return &peers{shared: s, chosen: map[string]string{}} }

// choose gives the peer of a namespace whose file has an address.
func (p *peers) choose(namespace, address string, pods []habitat.Pod) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if former, known := p.chosen[namespace]; known {
		address = former
	}
	return habitat.ChoosePeer(address, pods)
}

func (p *peers) remember(namespace, chosen string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.chosen[namespace] = chosen
}

func (p *peers) forget(namespace string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.chosen, namespace)
}

func (p *peers) add(mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("habitat-peers").
		Watches(&corev1.Pod{}, byNamespace()).
		Watches(&corev1.ConfigMap{}, byNamespace(), builder.WithPredicates(isOfPeers)).
		WithOptions(work()).
		Complete(p)
}

// isOfPeers lets through the file, and the Application that proves that it is ours.
var isOfPeers = predicate.Or(named(peerFile), named(peersApplication))

// Reconcile implements reconcile.Reconciler, for a namespace.
func (p *peers) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	namespace := request.Name
	application, file, err := p.peersOf(ctx, namespace)
	if err != nil {
		return reconcile.Result{}, err
	}
	if application == nil {
		p.forget(namespace)
		return reconcile.Result{}, nil
	}
	again := reconcile.Result{RequeueAfter: p.recheck}
	if p.withoutFile(application, file) != "" {
		return again, nil
	}
	var found corev1.PodList
	if err := p.client.List(ctx, &found, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, err
	}
	pods := make([]habitat.Pod, len(found.Items))
	for i := range found.Items {
		pods[i] = podOf(&found.Items[i])
	}
	current, has := file.Data[peerFile]
	chosen := p.choose(namespace, current, pods)
	if !has || chosen != current {
		err = p.write(ctx, file, chosen)
	}
	if err == nil {
		p.remember(namespace, chosen)
	}
	return ended(again, err)
}

func podOf(pod *corev1.Pod) habitat.Pod {
	peer := habitat.Pod{
		Name: pod.Name, IP: pod.Status.PodIP,
		Running: pod.Status.Phase == corev1.PodRunning, Deleted: pod.DeletionTimestamp != nil,
	}
	if pod.Status.StartTime != nil {
		peer.Started = pod.Status.StartTime.Time
	}
	return peer
}

// write changes the one key, if nobody has changed the file since it was read.
func (p *peers) write(ctx context.Context, file *corev1.ConfigMap, chosen string) error {
	after := file.DeepCopy()
	if after.Data == nil {
		after.Data = map[string]string{}
	}
	after.Data[peerFile] = chosen
	patch := client.MergeFromWithOptions(file, client.MergeFromWithOptimisticLock{})
	if err := p.client.Patch(ctx, after, patch, client.FieldOwner(Name)); err != nil {
		return client.IgnoreNotFound(err)
	}
	note := "no Pod of the namespace's Habitats runs"
	if chosen != "" {
		note = fmt.Sprintf("%s is the peer of the namespace's Habitats", chosen)
	}
	p.recorder.normal(referenceTo(file), nil, "PeerChosen", note)
	return nil
}

// withoutFile gives why there is no peer file that may be written; empty: there is one.
func (s *shared) withoutFile(peers, file *corev1.ConfigMap) string {
	switch {
	case peers == nil:
		return "there is no ConfigMap " + peersApplication + " yet"
	case errors.Is(mineOfAll(peers), errTaken):
		return "ConfigMap " + peersApplication + " belongs to somebody else: delete or rename it"
	case peers.DeletionTimestamp != nil:
		return "ConfigMap " + peersApplication + " is being deleted, and waited for"
	case file == nil, !isFileOf(peers, file):
		return s.whyNot(peers)
	case file.DeletionTimestamp != nil:
		return "ConfigMap " + peerFile + " is being deleted"
	case file.Immutable != nil && *file.Immutable:
		return "somebody has made ConfigMap " + peerFile + " immutable: delete it, and it is created anew"
	}
	if _, taken := file.BinaryData[peerFile]; taken {
		return "somebody has set binaryData[" + peerFile + "] of ConfigMap " + peerFile + ": remove it, or delete the ConfigMap, which is created anew"
	}
	return ""
}

// isFileOf tells if the ConfigMap is that of the Application.
func isFileOf(peers, file *corev1.ConfigMap) bool {
	return carries(file.Annotations, peers, manifest.ID{APIVersion: "v1", Kind: "ConfigMap", Namespace: file.Namespace, Name: file.Name})
}

// whyNot says in the agent's words why it has made no peer file.
func (s *shared) whyNot(peers *corev1.ConfigMap) string {
	if app, err := application.ReadFor(peers, s.cluster); err == nil {
		if ready := meta.FindStatusCondition(app.Status.Conditions, application.ReadyCondition); ready != nil && ready.Message != "" {
			return "ConfigMap " + peersApplication + ": " + ready.Message
		}
	}
	return "the agent has not made ConfigMap " + peerFile + " yet"
}
