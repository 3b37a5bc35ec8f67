package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/test/bench/workload"
	"github.com/krake-observer/krake-observer/test/program"
)

// memoryScenario measures the memory of an agent that has just started, when it is idle.
func (w *world) memoryScenario(ctx context.Context, s *set) error {
	return w.rounds(ctx, "Memory", s, w.agents(), func(ctx context.Context) (sample, error) {
		agent := w.running
		if err := w.start(ctx, nothing, s); err != nil {
			return nil, err
		}
		meter, err := w.meter()
		if err != nil {
			return nil, err
		}
		if err := w.start(ctx, agent, s); err != nil {
			return nil, err
		}
		if err := w.quiet(ctx); err != nil {
			return nil, err
		}
		requests, err := w.settle(ctx, meter.mark, user(agent), s)
		if err != nil {
			return nil, err
		}
		settled, err := w.memory(ctx)
		if err != nil {
			return nil, err
		}
		most, err := peak(w.pid())
		return sample{
			"MiB": mebibytes(settled), "peak-MiB": mebibytes(most),
			"writes": requests.sum("event") + requests.sum("hub patch") + requests.sum("hub update") + requests.sum("target patch"),
		}, err
	})
}

// memory returns the smallest resident memory of the contender within the next seconds, because garbage does not
// count.
func (w *world) memory(ctx context.Context) (settled int64, err error) {
	const seconds = 10
	for range seconds {
		now, err := usageOf(w.pid())
		if err != nil {
			return 0, err
		}
		if settled == 0 || now.resident < settled {
			settled = now.resident
		}
		if err := program.Pause(ctx, time.Second); err != nil {
			return 0, err
		}
	}
	return settled, nil
}

// restartScenario measures the time from the start of a process until the objects that changed before are repaired.
func (w *world) restartScenario(ctx context.Context, s *set) error {
	return w.rounds(ctx, "Restart", s, append([]string{floor}, w.agents()...), func(ctx context.Context) (sample, error) {
		contender := w.running
		if err := w.stop(); err != nil {
			return nil, err
		}
		d, err := w.newDrifter(ctx, s)
		if err != nil {
			return nil, err
		}
		defer d.stop()
		var begun []*drift
		for range min(20, s.size) {
			one, err := d.beginAny(ctx)
			if err != nil {
				return nil, err
			}
			begun = append(begun, one)
		}
		meter, err := w.meter()
		if err != nil {
			return nil, err
		}
		took, err := w.restart(ctx, contender, d, begun)
		if err != nil {
			return nil, err
		}
		used, err := meter.read()
		if err != nil {
			return nil, err
		}
		return used.into(sample{"s": took.Seconds()}), w.quiet(ctx)
	})
}

// restart starts a contender, and returns the time from the start of its process to the last of the repairs.
func (w *world) restart(ctx context.Context, contender string, d *drifter, begun []*drift) (time.Duration, error) {
	if err := w.start(ctx, contender, d.set); err != nil {
		return 0, err
	}
	process, err := usageOf(w.pid())
	if err != nil {
		return 0, err
	}
	age, err := process.age()
	if err != nil {
		return 0, err
	}
	started := time.Now().Add(-age)
	last := started
	for _, one := range begun {
		if repaired, err := d.await(ctx, one, time.After(10*time.Minute)); err != nil {
			return 0, err
		} else if !repaired {
			return 0, errors.New("what had drifted before the start is not repaired")
		}
		if one.back.After(last) {
			last = one.back
		}
	}
	return last.Sub(started), nil
}

// resting returns what the contender does meanwhile, without objects that drift.
func (w *world) resting(s *set, act func() error) (sample, error) {
	meter, err := w.meter()
	if err != nil {
		return nil, err
	}
	if err := act(); err != nil {
		return nil, err
	}
	used, err := meter.read()
	if err != nil {
		return nil, err
	}
	requests, err := w.requests(meter.mark, user(w.running), s)
	return used.into(sample{"%-of-core": 100 * used.contender.Seconds() / used.long.Seconds(), "requests": requests.sum("")}), err
}

// idleScenario measures the agents while nothing happens.
func (w *world) idleScenario(ctx context.Context, s *set) error {
	return w.rounds(ctx, "Idle", s, w.agents(), func(ctx context.Context) (sample, error) {
		return w.resting(s, func() error { return program.Pause(ctx, time.Duration(w.Seconds)*time.Second) })
	})
}

// foreignScenario makes Pods, and a tenth as many Deployments, that are not the agent's, and changes the status of each
// Deployment three times.
func (w *world) foreignScenario(ctx context.Context, s *set) error {
	if err := w.become(ctx, ours, s); err != nil {
		return err
	}
	before, err := w.memory(ctx)
	if err != nil {
		return err
	}
	if err := w.makeForeign(ctx); err != nil {
		return err
	}
	after, err := w.memory(ctx)
	if err != nil {
		return err
	}
	const rolls = 3
	count := max(1, w.Foreign/10)
	taken, err := w.resting(s, func() error {
		return program.Each(ctx, rolls*count, atOnce, func(ctx context.Context, i int) error {
			patch := fmt.Appendf(nil, `{"status":{"replicas":%d}}`, 1+i/count)
			_, err := w.client.AppsV1().Deployments(namespaceOf(i%count)).
				Patch(ctx, fmt.Sprintf("foreign-%d", i%count), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "foreign"}, "status")
			return err
		})
	})
	if err == nil {
		taken["growth-MiB"] = mebibytes(after - before)
		w.report.add(s.about("Foreign"), ours, taken)
	}
	return err
}

// makeForeign makes the Pods and Deployments, which have no mark of the agent.
func (w *world) makeForeign(ctx context.Context) error {
	pods := func(ctx context.Context, i int) error {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("foreign-%d", i)},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "registry.example.org/main:1.0.0"}}},
		}
		_, err := w.client.CoreV1().Pods(namespaceOf(i)).Create(ctx, pod, metav1.CreateOptions{})
		return err
	}
	if err := program.Each(ctx, w.Foreign, atOnce, pods); err != nil {
		return err
	}
	return program.Each(ctx, max(1, w.Foreign/10), atOnce, func(ctx context.Context, i int) error {
		deployment, err := workload.Deployment("foreign", fmt.Sprintf("foreign-%d", i))
		if err != nil {
			return err
		}
		_, err = w.client.AppsV1().Deployments(namespaceOf(i)).Create(ctx, deployment, metav1.CreateOptions{})
		return err
	})
}
