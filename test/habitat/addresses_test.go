package habitat

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// ofHabitats selects the Pods of Habitats.
const ofHabitats = "habitat=true"

// addresses sets a unique address in the status of each running Pod of a Habitat. The
// stand-in for the kubelet sets none.
type addresses struct {
	client kubernetes.Interface
	count  atomic.Uint32
	given  sync.Map // the UIDs of the Pods with an address
	cancel context.CancelFunc
	ended  func()
}

func giveAddresses(ctx context.Context, client kubernetes.Interface) (*addresses, error) {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx)) // that context ends with the start
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = ofHabitats }))
	a := &addresses{client: client, cancel: cancel, ended: factory.Shutdown}
	give := func(object any) {
		if pod, ok := object.(*corev1.Pod); ok && isWithoutAddress(pod) {
			a.give(running, pod)
		}
	}
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: give, UpdateFunc: func(_, object any) { give(object) },
	})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("watch Pods: %w", err)
	}
	fmt.Fprintln(os.Stderr, "habitat: a stand-in for the network gives each running Pod of a Habitat an address of its own; it leads nowhere")
	factory.Start(running.Done())
	factory.WaitForCacheSync(ctx.Done())
	return a, nil
}

func isWithoutAddress(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning && pod.Status.PodIP == "" && pod.DeletionTimestamp == nil
}

// give writes the status of this Pod once: later events may have an older version of
// it. A deleted Pod needs no address.
func (a *addresses) give(ctx context.Context, pod *corev1.Pod) {
	if _, done := a.given.LoadOrStore(pod.UID, true); done {
		return
	}
	n := a.count.Add(1)
	address := fmt.Sprintf("10.%d.%d.%d", 64+n>>16, n>>8&0xff, n&0xff)
	patch := fmt.Sprintf(`{"metadata": {"uid": %q}, "status": {"podIP": %q, "podIPs": [{"ip": %q}]}}`, pod.UID, address, address)
	_, err := a.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{FieldManager: "stand-in-for-the-network"}, "status")
	isAnother := apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsInvalid(err) // another Pod of the name
	if err != nil && !isAnother && ctx.Err() == nil {
		fmt.Fprintf(os.Stderr, "habitat: give Pod %s/%s an address: %v\n", pod.Namespace, pod.Name, err)
	}
}

func (a *addresses) stop() {
	a.cancel()
	a.ended()
}
