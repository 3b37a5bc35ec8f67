package main

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/test/bench/workload"
	"github.com/krake-observer/krake-observer/test/program"
	"github.com/krake-observer/krake-observer/test/usage"
)

// The names of values, with their units, that only these scenarios have.
const (
	latency50 = "an innocent's PATCH p50 ms"
	latency99 = "an innocent's PATCH p99 ms"
	eventCPU  = "contender's CPU us/event"
)

// idleScenario counts the agent's requests while nothing happens, and measures its
// resources.
func (w *world) idleScenario(ctx context.Context, s *set) error {
	if err := w.become(ctx, ours, s); err != nil {
		return err
	}
	about := fmt.Sprintf("idle, %s, %d objects, %d s", s.kind.Name, s.size, w.Seconds)
	seen, err := w.observed(s, func() error { return program.Pause(ctx, time.Duration(w.Seconds)*time.Second) })
	if err != nil {
		return err
	}
	cpu := seen.processor(about)
	cpu.Bound = new(0.2)
	return w.report.measured(seen.asked(about), cpu)
}

// attention is what the agent does while something happens, or nothing.
type attention struct {
	requests counts
	cores    float64
}

// observed returns what the agent does meanwhile.
func (w *world) observed(s *set, act func() error) (attention, error) {
	meter, err := w.meter()
	if err != nil {
		return attention{}, err
	}
	if err := act(); err != nil {
		return attention{}, err
	}
	used, err := meter.read()
	if err != nil {
		return attention{}, err
	}
	requests, err := w.requests(meter.mark, oursUser, s)
	return attention{requests.counts, used.cores(used.contender)}, err
}

// checks counts the lists of metadata that check the watches.
func (a attention) checks() int { return a.requests.sum("other list") }

func (a attention) asked(about string) figure {
	return figure{
		Scenario: about, Name: "requests beyond watches, Lease and the check of the watches", Value: float64(a.requests.sum("") - a.checks()),
		Bound: new(0.0), Note: a.requests.String(),
	}
}

func (a attention) processor(about string) figure {
	return figure{Scenario: about, Name: "CPU", Value: 100 * a.cores, Unit: "% of a core"}
}

// harmScenario compares how long an unrelated client's PATCHes take, with and without a
// contender.
func (w *world) harmScenario(ctx context.Context, s *set) error {
	const name = "innocent"
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := w.clients.Typed.CoreV1().ConfigMaps(contenderAccount).Create(ctx, cm, metav1.CreateOptions{}); err != nil {
		return err
	}
	contenders := []string{ours}
	if w.has(poller) {
		contenders = append(contenders, poller)
	}
	about := comparison{Scenario: "harm", Base: nothing, Metric: latency50}
	return w.paired(ctx, about, s, contenders, func(ctx context.Context) (sample, error) {
		meter, err := w.meter()
		if err != nil {
			return sample{}, err
		}
		var took []float64
		for i := range 2 * w.Drifts {
			started := time.Now()
			_, err := w.clients.Typed.CoreV1().ConfigMaps(contenderAccount).Patch(ctx, name, types.MergePatchType,
				fmt.Appendf(nil, `{"data":{"count":"%d %d"}}`, started.UnixNano(), i), metav1.PatchOptions{})
			if err != nil {
				return sample{}, err
			}
			took = append(took, milliseconds(time.Since(started)))
		}
		used, err := meter.read()
		return sample{Foreign: used.cores(used.foreign), Values: map[string]float64{
			latency50: median(took), latency99: percentile(took, 99), seconds: used.long.Seconds(),
		}}, err
	})
}

// churnScenario compares the cost of events that change no observed field with the cost
// of decoding them.
func (w *world) churnScenario(ctx context.Context, s *set) error {
	about := comparison{Scenario: "churn", Base: decoder, Metric: eventCPU}
	var total atomic.Int64
	return w.paired(ctx, about, s, []string{ours}, func(ctx context.Context) (sample, error) {
		meter, err := w.meter()
		if err != nil {
			return sample{}, err
		}
		err = program.Each(ctx, w.Churn, atOnce, func(ctx context.Context, i int) error {
			// Each write differs, because a write that changes nothing causes no event.
			patch := fmt.Appendf(nil, `{"status":{"collisionCount":%d}}`, total.Add(1))
			_, err := w.clients.Typed.AppsV1().Deployments(s.namespace(i%s.size)).
				Patch(ctx, s.object(i%s.size), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "churn"}, "status")
			return err
		})
		if err != nil {
			return sample{}, err
		}
		foreign, err := meter.read()
		if err != nil {
			return sample{}, err
		}
		if err := w.quiet(ctx); err != nil {
			return sample{}, err
		}
		used, err := meter.read()
		if err != nil {
			return sample{}, err
		}
		requests, err := w.requests(meter.mark, user(w.running), s)
		if err != nil {
			return sample{}, err
		}
		return sample{Foreign: foreign.cores(foreign.foreign), Values: map[string]float64{
			eventCPU:     float64(used.contender.Microseconds()) / float64(w.Churn),
			requestsEach: float64(requests.sum("target")) / float64(w.Churn), hubWrites: float64(requests.sum("hub patch")),
			seconds: foreign.long.Seconds(),
		}}, err
	})
}

// unrelatedScenario makes ConfigMaps of 256 KiB that are not the agent's, and measures
// the growth of the agent.
func (w *world) unrelatedScenario(ctx context.Context, s *set) error {
	grown, err := w.growth(ctx, s, func() error {
		return program.Each(ctx, w.Unrelated, atOnce, func(ctx context.Context, i int) error {
			cm := &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("unrelated-%d", i)}, Data: map[string]string{"text": strings.Repeat("unrelated ", 256<<10/10)},
			}
			_, err := w.clients.Typed.CoreV1().ConfigMaps(namespaceOf(i)).Create(ctx, cm, metav1.CreateOptions{})
			return err
		})
	})
	if err != nil {
		return err
	}
	return w.report.measured(figure{
		Scenario: "unrelated", Name: fmt.Sprintf("growth by %d ConfigMaps of 256 KiB", w.Unrelated), Value: grown, Unit: "MiB", Bound: new(5.0),
	})
}

// growth returns by how many MiB the agent grows while objects of others are made.
func (w *world) growth(ctx context.Context, s *set, others func() error) (float64, error) {
	if err := w.become(ctx, ours, s); err != nil {
		return 0, err
	}
	_, before, err := w.memory(ctx)
	if err != nil {
		return 0, err
	}
	if err := others(); err != nil {
		return 0, err
	}
	_, after, err := w.memory(ctx)
	return mebibytes(after - before), err
}

// wideScenario has one Application of a hundred objects.
func (w *world) wideScenario(ctx context.Context, _ *set) error {
	s := &set{name: "wide", kind: workload.ConfigMaps(), perApplication: 100}
	return w.small(ctx, "wide", s, 100)
}

// deepScenario has custom resources of 2,000 lines, four of which are in an Application of
// 200 KiB. All lines are observed.
func (w *world) deepScenario(ctx context.Context, _ *set) error {
	definition := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	if _, err := w.clients.Dynamic.Resource(definition).Create(ctx, workload.Definition(), metav1.CreateOptions{}); err != nil {
		return err
	}
	_, err := w.clients.Typed.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "krake-agent-deeps", Labels: map[string]string{"krake.dev/aggregate-to-agent": "true"}},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"load.example.org"}, Resources: []string{"deeps"},
			Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return w.small(ctx, "deep", &set{name: "deep", kind: workload.Custom(), perApplication: 4}, 20)
}

// small measures drift in a small set, one object at a time.
func (w *world) small(ctx context.Context, scenario string, s *set, size int) error {
	if err := w.populate(ctx, s, size); err != nil {
		return err
	}
	about := comparison{Scenario: scenario, Concurrency: 1, Base: floor, Metric: p50}
	return w.paired(ctx, about, s, []string{ours}, func(ctx context.Context) (sample, error) { return w.drift(ctx, s, 1) })
}

// fleetScenario has many Applications of three objects, and one drift a second.
func (w *world) fleetScenario(ctx context.Context, _ *set) error {
	s := &set{name: "fleet", kind: workload.ConfigMaps(), perApplication: 1, companions: true}
	if err := w.populate(ctx, s, w.Fleet); err != nil {
		return err
	}
	// The agent starts with existing Applications, as in daily use.
	if err := w.start(ctx, nothing, s); err != nil {
		return err
	}
	if err := w.become(ctx, ours, s); err != nil {
		return err
	}
	d, err := w.newDrifter(ctx, s)
	if err != nil {
		return err
	}
	var most int64
	taken, err := w.measured(ctx, d, func() error {
		ticks := time.NewTicker(time.Second)
		defer ticks.Stop()
		for range w.Seconds {
			<-ticks.C
			if err := d.run(ctx, 1, 1); err != nil {
				return err
			}
			now, err := usage.Of(w.pid())
			if err != nil {
				return err
			}
			most = max(most, now.Resident)
		}
		return nil
	})
	if err != nil {
		return err
	}
	about := fmt.Sprintf("fleet, %d Applications of 3 objects, a drift a second for %d s", w.Fleet, w.Seconds)
	half, bytes, none := 0.5, 256.0, 0.0
	return w.report.measured(
		figure{Scenario: about, Name: "CPU", Value: taken.Values[cpuEach] * taken.Values[drifts] / 1000 / taken.Values[seconds], Unit: "cores", Bound: &half},
		figure{Scenario: about, Name: "memory, at most", Value: mebibytes(most), Unit: "MiB", Bound: &bytes},
		figure{Scenario: about, Name: "drift, median", Value: taken.Values[p50], Unit: "ms"},
		figure{Scenario: about, Name: "drift, 99 of 100", Value: taken.Values[p99], Unit: "ms"},
		figure{Scenario: about, Name: "unrepaired", Value: taken.Values[unrepaired], Bound: &none},
		figure{Scenario: about, Name: "foreign CPU", Value: taken.Foreign, Unit: "cores"},
	)
}
