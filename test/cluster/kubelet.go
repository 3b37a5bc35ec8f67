package cluster

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// PhaseAnnotation, on a Pod, is the phase that the stand-in for the kubelet sets.
// Without the annotation it is Running. Succeeded and Failed are for a Pod that has
// ended, and Pending for one that the stand-in leaves alone.
const PhaseAnnotation = "stand-in.example.org/phase"

// standInUser is the stand-in's user name in the audit log. It has all rights.
const standInUser = "stand-in-for-the-kubelet"

// standIn marks each new Pod as running and ready, once: later changes by a test stay.
// It binds no Pod to a node and sets no address, so that no Service leads to one. A
// deleted Pod needs no work: the API server removes a Pod without a node at once.
type standIn struct {
	controlPlane *controlPlane
	client       kubernetes.Interface
	pods         corelisters.PodLister
	queue        workqueue.TypedRateLimitingInterface[cache.ObjectName]
}

// standInWorkers is small, because a status is written in milliseconds.
const standInWorkers = 4

// pretendKubelet starts the stand-in, which ends with the cluster.
func (b *controlPlane) pretendKubelet(ctx context.Context) error {
	config := b.RESTConfig()
	config.Impersonate = rest.ImpersonationConfig{UserName: standInUser, Groups: []string{"system:masters"}}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make client of the stand-in for the kubelet: %w", err)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods()
	s := &standIn{controlPlane: b, client: client, pods: pods.Lister(), queue: workqueue.NewTypedRateLimitingQueue(
		workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]())}
	if _, err := pods.Informer().AddEventHandler(s.handler()); err != nil {
		return fmt.Errorf("watch Pods: %w", err)
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx)) // ctx ends with the start
	var workers sync.WaitGroup
	b.endStandIn = func() {
		cancel()
		s.queue.ShutDown()
		workers.Wait()
		factory.Shutdown()
	}
	factory.Start(running.Done())
	if !cache.WaitForCacheSync(ctx.Done(), pods.Informer().HasSynced) {
		return fmt.Errorf("wait for the Pods: %w", ctx.Err())
	}
	for range standInWorkers {
		workers.Go(func() { s.work(running) })
	}
	fmt.Fprintln(b.options.log(), "cluster: a stand-in for the kubelet declares Pods ready; none of them runs")
	return nil
}

func (s *standIn) handler() cache.ResourceEventHandler {
	enqueue := func(object any) {
		if pod, ok := object.(*corev1.Pod); ok && isNew(pod) {
			s.queue.Add(cache.MetaObjectToName(pod))
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: enqueue, UpdateFunc: func(_, object any) { enqueue(object) }}
}

// isNew reports whether no status has been set for the Pod.
func isNew(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodPending && phaseOf(pod) != corev1.PodPending
}

func phaseOf(pod *corev1.Pod) corev1.PodPhase {
	if phase, ok := pod.Annotations[PhaseAnnotation]; ok {
		return corev1.PodPhase(phase)
	}
	return corev1.PodRunning
}

// work handles Pods until the queue is shut down.
func (s *standIn) work(ctx context.Context) {
	for {
		name, shutDown := s.queue.Get()
		if shutDown {
			return
		}
		if err := s.declare(ctx, name); err != nil && ctx.Err() == nil {
			fmt.Fprintf(s.controlPlane.options.log(), "cluster: declare Pod %s: %v\n", name, err)
			s.queue.AddRateLimited(name)
		} else {
			s.queue.Forget(name)
		}
		s.queue.Done(name)
	}
}

// declare writes the status of a Pod. A changed or deleted Pod has another event.
func (s *standIn) declare(ctx context.Context, name cache.ObjectName) error {
	pod, err := s.pods.Pods(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) || err == nil && !isNew(pod) {
		return nil
	}
	if err != nil {
		return err
	}
	pod = pod.DeepCopy()
	pod.Status = declared(pod, metav1.Now())
	_, err = s.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// declared returns the status of a Pod in its phase, as a kubelet would write it.
func declared(pod *corev1.Pod, now metav1.Time) corev1.PodStatus {
	phase := phaseOf(pod)
	status := corev1.PodStatus{Phase: phase, QOSClass: pod.Status.QOSClass, StartTime: &now}
	for _, name := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		condition := corev1.PodCondition{Type: name, Status: corev1.ConditionTrue, LastTransitionTime: now}
		if phase != corev1.PodRunning && (name == corev1.ContainersReady || name == corev1.PodReady) {
			condition.Status, condition.Reason = corev1.ConditionFalse, "PodCompleted"
		}
		status.Conditions = append(status.Conditions, condition)
	}
	for _, container := range pod.Spec.InitContainers {
		state := ended(0, now)
		if container.RestartPolicy != nil && phase == corev1.PodRunning { // a sidecar
			state = started(now)
		}
		status.InitContainerStatuses = append(status.InitContainerStatuses, statusOf(container, state, true))
	}
	for _, container := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, statusOf(container, stateIn(phase, now), phase == corev1.PodRunning))
	}
	return status
}

func stateIn(phase corev1.PodPhase, now metav1.Time) corev1.ContainerState {
	switch phase {
	case corev1.PodSucceeded:
		return ended(0, now)
	case corev1.PodFailed:
		return ended(1, now)
	}
	return started(now)
}

func started(now metav1.Time) corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
}

func ended(code int32, now metav1.Time) corev1.ContainerState {
	reason := "Completed"
	if code != 0 {
		reason = "Error"
	}
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, StartedAt: now, FinishedAt: now}}
}

func statusOf(container corev1.Container, state corev1.ContainerState, ready bool) corev1.ContainerStatus {
	running := state.Running != nil
	return corev1.ContainerStatus{Name: container.Name, Image: container.Image, State: state, Ready: ready, Started: &running}
}
