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
	var long time.Duration
	rolling, err := w.unchecked(s, func() error {
		began := time.Now()
		defer func() { long = time.Since(began) }()
		return w.rollForeign(ctx)
	})
	if err != nil {
		return err
	}
	resting, err := w.unchecked(s, func() error { return program.Pause(ctx, long) })
	if err != nil {
		return err
	}
	const roll, rest = "foreign, Deployments of others roll", "foreign, nothing happens"
	return w.report.measured(
		figure{
			Scenario: "foreign", Name: fmt.Sprintf("growth by %d Pods and %d Deployments", w.Foreign, w.Foreign/10), Value: grown, Unit: "MiB", Bound: new(1.0),
		},
		rolling.asked(roll), rolling.processor(roll), resting.asked(rest), resting.processor(rest),
		figure{Scenario: roll, Name: "CPU beyond that at rest", Value: 100 * (rolling.cores - resting.cores), Unit: "% of a core", Bound: new(0.1)},
	)
}

// unchecked observes the agent, and once more if it checked its watches meanwhile. That costs more than
// all else that it does at rest, and it does it about every ten minutes only.
func (w *world) unchecked(s *set, act func() error) (attention, error) {
	seen, err := w.observed(s, act)
	if err == nil && seen.checks() > 0 {
		return w.observed(s, act)
	}
	return seen, err
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
