package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/test/bench/workload"
	"github.com/krake-observer/krake-observer/test/kit"
	"github.com/krake-observer/krake-observer/test/program"
)

const (
	// rolloutLong is how long the controller of a Deployment takes to replace its Pods.
	rolloutLong = 26 * time.Second
	// driftEvery is how often an object beside the rollout drifts.
	driftEvery = 50 * time.Millisecond
)

// rollout has the Applications whose Deployments get another image, all at once, and beside
// them others whose objects drift.
type rollout struct {
	w               *world
	rolling, others *set
	long            time.Duration
}

// rolloutScenario counts what a rollout costs the hub, and compares repairs with and without it.
func (w *world) rolloutScenario(ctx context.Context, _ *set) error {
	size := w.Rollout * w.PerApplication
	r := &rollout{
		w:       w,
		rolling: &set{name: "rolling", kind: workload.Rolling(1), perApplication: w.PerApplication},
		others:  &set{name: "others", kind: workload.ConfigMaps(), perApplication: w.PerApplication},
		long:    min(rolloutLong, time.Duration(w.Seconds)*time.Second),
	}
	for _, s := range []*set{r.rolling, r.others} {
		if err := w.populate(ctx, s, size); err != nil {
			return err
		}
	}
	if err := program.Each(ctx, size, atOnce, func(ctx context.Context, i int) error { return r.report(ctx, i, 1, done) }); err != nil {
		return err
	}
	if err := w.quiet(ctx); err != nil {
		return err
	}
	alone, err := r.drift(ctx, func(ctx context.Context) error { return program.Pause(ctx, r.long) })
	if err != nil {
		return err
	}
	mark, err := kit.MarkAudit(w.cluster)
	if err != nil {
		return err
	}
	during, err := r.drift(ctx, r.rollOut)
	if err != nil {
		return err
	}
	return r.measure(ctx, mark, alone, during)
}

// drift has one object drift after the other, from the begin of an act to its end.
func (r *rollout) drift(ctx context.Context, act func(context.Context) error) (sample, error) {
	d, err := r.w.newDrifter(ctx, r.others)
	if err != nil {
		return sample{}, err
	}
	return r.w.measured(ctx, d, func() error {
		over := make(chan struct{})
		return program.Each(ctx, 2, 2, func(ctx context.Context, i int) error {
			if i == 0 {
				defer close(over)
				return act(ctx)
			}
			ticks := time.NewTicker(driftEvery)
			defer ticks.Stop()
			for {
				select {
				case <-over:
					return nil
				case <-ticks.C:
					if err := d.run(ctx, 1, 1); err != nil {
						return err
					}
				}
			}
		})
	})
}

// rollOut has a user apply all Applications with another image, and the controller of the
// Deployments replace their Pods.
func (r *rollout) rollOut(ctx context.Context) error {
	r.rolling.kind = workload.Rolling(2)
	err := program.Each(ctx, r.rolling.size/r.rolling.perApplication, atOnce, func(ctx context.Context, i int) error {
		cm, err := r.rolling.application(i)
		if err != nil {
			return err
		}
		patch, err := json.Marshal(map[string]any{"data": cm.Data})
		if err != nil {
			return err
		}
		_, err = r.w.clients.Typed.CoreV1().ConfigMaps(namespaceOf(i)).Patch(ctx, cm.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "kubectl"})
		return err
	})
	if err != nil {
		return err
	}
	return program.Each(ctx, r.rolling.size, r.rolling.size, r.replacePods)
}

// replicas are the counts in the status of a Deployment of three Pods.
type replicas struct {
	All       int `json:"replicas"`
	Updated   int `json:"updatedReplicas"`
	Ready     int `json:"readyReplicas"`
	Available int `json:"availableReplicas"`
}

// done are the counts before a rollout and after it.
var done = replicas{3, 3, 3, 3}

// steps are the counts that the controller of a Deployment reports, with one Pod more than
// three at most and none less.
func steps() []replicas {
	all := []replicas{{3, 0, 3, 3}}
	for updated := 1; updated <= 3; updated++ {
		all = append(all, replicas{4, updated, 3, 3}, replicas{4, updated, 4, 4}, replicas{3, updated, 3, 3})
	}
	return all
}

// replacePods reports the steps of one Deployment, once our agent has written the new image.
func (r *rollout) replacePods(ctx context.Context, i int) error {
	all := steps()
	pause := r.long / time.Duration(len(all))
	if err := program.Pause(ctx, rand.N(pause)); err != nil {
		return err
	}
	for {
		deployment, err := r.w.clients.Typed.AppsV1().Deployments(r.rolling.namespace(i)).Get(ctx, r.rolling.object(i), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if deployment.Generation > 1 {
			break
		}
		if err := program.Pause(ctx, time.Second); err != nil {
			return err
		}
	}
	for _, step := range all {
		if err := r.report(ctx, i, 2, step); err != nil {
			return err
		}
		if err := program.Pause(ctx, pause); err != nil {
			return err
		}
	}
	return nil
}

// report writes the status of a Deployment as its controller does.
func (r *rollout) report(ctx context.Context, i int, generation int64, counts replicas) error {
	status := struct {
		replicas

		ObservedGeneration int64 `json:"observedGeneration"`
		Conditions         []any `json:"conditions"`
	}{counts, generation, []any{map[string]any{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}}}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	_, err = r.w.clients.Typed.AppsV1().Deployments(r.rolling.namespace(i)).
		Patch(ctx, r.rolling.object(i), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "kube-controller-manager"}, "status")
	return err
}

// measure reports the writes since the mark, and the repairs beside.
func (r *rollout) measure(ctx context.Context, mark kit.Mark, alone, during sample) error {
	writes, err := r.statusWrites(mark)
	if err != nil {
		return err
	}
	reasons, err := r.events(ctx)
	if err != nil {
		return err
	}
	cm, err := r.w.clients.Typed.CoreV1().ConfigMaps(namespaceOf(0)).Get(ctx, r.rolling.applicationName(0), metav1.GetOptions{})
	if err != nil {
		return err
	}
	count := len(writes)
	applications, long := r.rolling.size/r.rolling.perApplication, during.Values[seconds]
	about := fmt.Sprintf("rollout, %d Applications of %d Deployments, %.0f s", applications, r.rolling.perApplication, long)
	figures := []figure{
		{Name: "status writes an Application", Value: float64(count) / float64(applications), Bound: new(3.0), Note: fmt.Sprintf("%d in all", count)},
		{Name: "status writes in one second, at most", Value: float64(busiest(writes)), Unit: "1/s"},
		{Name: "the hub's time for a status write, median", Value: median(serving(writes)), Unit: "ms"},
		{Name: "status written", Value: float64(count*cm.Size()) / 1024 / long, Unit: "KiB/s", Note: fmt.Sprintf("%d KiB each", cm.Size()>>10)},
		{Name: "writes to the hub, with those of the Applications beside", Value: during.Values[hubWrites] / long, Unit: "1/s"},
		{Name: "Events of the Applications", Value: float64(reasons.sum("")), Note: reasons.String()},
		{Name: "drift beside, median, alone", Value: alone.Values[p50], Unit: "ms"},
		{Name: "drift beside, median, during the rollout", Value: during.Values[p50], Unit: "ms"},
		{Name: "drift beside, 99 of 100, alone", Value: alone.Values[p99], Unit: "ms"},
		{Name: "drift beside, 99 of 100, during the rollout", Value: during.Values[p99], Unit: "ms"},
		{Name: "unrepaired", Value: alone.Values[unrepaired] + during.Values[unrepaired], Bound: new(0.0)},
		{Name: "foreign CPU", Value: during.Foreign, Unit: "cores"},
	}
	for i := range figures {
		figures[i].Scenario = about
	}
	return r.w.report.measured(figures...)
}

// statusWrites are our agent's writes of the Applications that roll out.
func (r *rollout) statusWrites(mark kit.Mark) ([]kit.Request, error) {
	prefix := applicationPrefix + r.rolling.name
	return mark.FindNaming([]string{prefix}, kit.By(oursUser), func(request kit.Request) bool {
		return strings.HasPrefix(request.Object.Name, prefix) && request.Object.Resource == "configmaps" && request.Verb == "patch"
	})
}

// busiest is how many of the requests were received within one second, at most.
func busiest(requests []kit.Request) int {
	var times []time.Time
	for _, request := range requests {
		times = append(times, request.Received)
	}
	slices.SortFunc(times, time.Time.Compare)
	most, from := 0, 0
	for to := range times {
		for times[to].Sub(times[from]) >= time.Second {
			from++
		}
		most = max(most, to+1-from)
	}
	return most
}

// serving is how long the API server had to do with each request, in milliseconds.
func serving(requests []kit.Request) []float64 {
	var took []float64
	for _, request := range requests {
		took = append(took, milliseconds(request.Ended.Sub(request.Received)))
	}
	return took
}

// events counts the Events of the rollout, by their reasons: those of the Applications that
// roll out, and of their objects, but for the creation.
func (r *rollout) events(ctx context.Context) (counts, error) {
	list, err := r.w.clients.Typed.EventsV1().Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	isOurs := func(event eventsv1.Event) bool {
		name := event.Regarding.Name
		return strings.HasPrefix(name, r.rolling.name+"-") || strings.HasPrefix(name, applicationPrefix+r.rolling.name)
	}
	found := counts{}
	for _, event := range list.Items {
		if isOurs(event) && event.Reason != "Created" {
			found[event.Reason]++
		}
	}
	return found, nil
}
