package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/test/bench/workload"
	"github.com/krake-observer/krake-observer/test/program"
)

// rollsOfForeign is how often the status of each foreign Deployment changes.
const rollsOfForeign = 3

// foreignScenario makes Pods, and a tenth as many Deployments, that are not the agent's. It compares
// the agent while their statuses change with the agent while nothing happens, for the same time.
func (w *world) foreignScenario(ctx context.Context, s *set) error {
	grown, err := w.growth(ctx, s, func() error { return w.makeForeign(ctx) })
	if err != nil {
		return err
	}
	var began time.Time
	rolling, err := w.unchecked("foreign, Deployments of others roll", s, func() error {
		began = time.Now()
		return w.rollForeign(ctx)
	})
	if err != nil {
		return err
	}
	long := time.Since(began)
	resting, err := w.unchecked("foreign, nothing happens", s, func() error { return program.Pause(ctx, long) })
	if err != nil {
		return err
	}
	growth := figure{
		Scenario: "foreign", Name: fmt.Sprintf("growth by %d Pods and %d Deployments", w.Foreign, w.Foreign/10), Value: grown, Unit: "MiB", Bound: new(1.0),
	}
	return w.report.measured(append(append([]figure{growth}, rolling...), resting...)...)
}

// unchecked observes the agent, and once more if it checked its watches meanwhile: that costs more than
// all else that it does at rest, and comes about every ten minutes only.
func (w *world) unchecked(about string, s *set, act func() error) ([]figure, error) {
	figures, checked, err := w.observed(about, s, act)
	if err == nil && checked {
		figures, _, err = w.observed(about, s, act)
	}
	return figures, err
}

// makeForeign makes the Pods and Deployments, which have no mark of the agent.
func (w *world) makeForeign(ctx context.Context) error {
	pods := func(ctx context.Context, i int) error {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("foreign-%d", i)},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example.org/main:1.0.0"}}},
		}
		_, err := w.clients.Typed.CoreV1().Pods(namespaceOf(i)).Create(ctx, pod, metav1.CreateOptions{})
		return err
	}
	if err := program.Each(ctx, w.Foreign, atOnce, pods); err != nil {
		return err
	}
	kind := workload.Deployments()
	return program.Each(ctx, w.Foreign/10, atOnce, func(ctx context.Context, i int) error {
		deployment := &unstructured.Unstructured{Object: kind.Manifest("foreign", fmt.Sprintf("foreign-%d", i))}
		_, err := w.clients.Dynamic.Resource(kind.Resource).Namespace(namespaceOf(i)).Create(ctx, deployment, metav1.CreateOptions{})
		return err
	})
}

// rollForeign changes the status of each Deployment, as its controller does.
func (w *world) rollForeign(ctx context.Context) error {
	count := w.Foreign / 10
	return program.Each(ctx, rollsOfForeign*count, atOnce, func(ctx context.Context, i int) error {
		patch := fmt.Appendf(nil, `{"status":{"replicas":%d}}`, 1+i/count)
		_, err := w.clients.Typed.AppsV1().Deployments(namespaceOf(i%count)).
			Patch(ctx, fmt.Sprintf("foreign-%d", i%count), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "foreign"}, "status")
		return err
	})
}
