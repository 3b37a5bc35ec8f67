package main

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
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
	// version is that of the image. Each rollout has the next, and with it each Deployment the next generation.
	version int
}

// rolloutScenario compares repairs with and without a rollout, and counts what a rollout costs the hub. Beside
// the floor, which knows no Application, the bench itself writes what our agent would write for the rollout.
func (w *world) rolloutScenario(ctx context.Context, _ *set) error {
	size := w.Rollout * w.PerApplication
	r := &rollout{
		w:       w,
		rolling: &set{name: "rolling", kind: workload.Rolling(1), perApplication: w.PerApplication},
		others:  &set{name: "others", kind: workload.ConfigMaps(), perApplication: w.PerApplication},
		long:    min(rolloutLong, time.Duration(w.Seconds)*time.Second),
		version: 1,
	}
	for _, s := range []*set{r.rolling, r.others} {
		if err := w.populate(ctx, s, size); err != nil {
			return err
		}
	}
	if err := program.Each(ctx, size, atOnce, func(ctx context.Context, i int) error { return r.report(ctx, i, done) }); err != nil {
		return err
	}
	return w.rounds(ctx, "Rollout", r.others, append([]string{floor}, w.agents()...), r.measure)
}

// measure has objects drift for some time, and then during a rollout.
func (r *rollout) measure(ctx context.Context) (sample, error) {
	alone, err := r.drift(ctx, func(ctx context.Context) error { return program.Pause(ctx, r.long) })
	if err != nil {
		return nil, err
	}
	mark, err := kit.MarkAudit(r.w.cluster)
	if err != nil {
		return nil, err
	}
	during, err := r.drift(ctx, r.rollOut)
	if err != nil {
		return nil, err
	}
	during["p99-to-p99-without"] = during["p99-ms"] / alone["p99-ms"]
	for _, unit := range []string{unrepaired, relapsed, strayed} {
		during[unit] += alone[unit]
	}
	if isOurs(r.w.running) {
		err = r.count(mark, during)
	}
	return during, err
}

// drift has an object drift each driftEvery, from the begin of an act to its end. Drifts do not wait for the repair
// of former ones: the slow moments would have fewer of them.
func (r *rollout) drift(ctx context.Context, act func(context.Context) error) (sample, error) {
	d, err := r.w.newDrifter(ctx, r.others)
	if err != nil {
		return nil, err
	}
	return r.w.measured(ctx, d, func() error {
		group, ctx := errgroup.WithContext(ctx)
		over := make(chan struct{})
		group.Go(func() error {
			defer close(over)
			return act(ctx)
		})
		ticks := time.NewTicker(driftEvery)
		defer ticks.Stop()
		for {
			select {
			case <-over:
				return group.Wait()
			case <-ticks.C:
				group.Go(func() error { return d.run(ctx, 1, 1) })
			}
		}
	})
}

// rollOut has a user apply all Applications with another image, and the controller of the
// Deployments replace their Pods.
func (r *rollout) rollOut(ctx context.Context) error {
	r.version++
	r.rolling.kind = workload.Rolling(r.version)
	if err := program.Each(ctx, r.rolling.size/r.rolling.perApplication, atOnce, r.apply); err != nil {
		return err
	}
	return program.Each(ctx, r.rolling.size, r.rolling.size, r.replacePods)
}

// apply changes an Application and, unless our agent runs, its Deployments.
func (r *rollout) apply(ctx context.Context, n int) error {
	s := r.rolling
	cm, err := s.application(n)
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"data": cm.Data})
	if err != nil {
		return err
	}
	_, err = r.w.client.CoreV1().ConfigMaps(namespaceOf(n)).Patch(ctx, cm.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "kubectl"})
	if err != nil || isOurs(r.w.running) {
		return err
	}
	for i := n * s.perApplication; i < (n+1)*s.perApplication; i++ {
		patch, err := json.Marshal(s.kind.Manifest(s.name, s.object(i)))
		if err != nil {
			return err
		}
		if _, err := s.kind.Write(ctx, r.w.client, s.namespace(i), s.object(i), patch, metav1.PatchOptions{FieldManager: "krake-observer"}); err != nil {
			return err
		}
	}
	return nil
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

// replacePods reports the steps of one Deployment, once it has the new image.
func (r *rollout) replacePods(ctx context.Context, i int) error {
	all := steps()
	pause := r.long / time.Duration(len(all))
	if err := program.Pause(ctx, rand.N(pause)); err != nil {
		return err
	}
	for {
		deployment, err := r.w.client.AppsV1().Deployments(r.rolling.namespace(i)).Get(ctx, r.rolling.object(i), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if deployment.Generation >= int64(r.version) {
			break
		}
		if err := program.Pause(ctx, time.Second); err != nil {
			return err
		}
	}
	for _, step := range all {
		if err := r.report(ctx, i, step); err != nil {
			return err
		}
		if err := program.Pause(ctx, pause); err != nil {
			return err
		}
	}
	return nil
}

// report writes the status of a Deployment as its controller does.
func (r *rollout) report(ctx context.Context, i int, counts replicas) error {
	status := struct {
		replicas

		ObservedGeneration int64 `json:"observedGeneration"`
		Conditions         []any `json:"conditions"`
	}{counts, int64(r.version), []any{map[string]any{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}}}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	_, err = r.w.client.AppsV1().Deployments(r.rolling.namespace(i)).
		Patch(ctx, r.rolling.object(i), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "kube-controller-manager"}, "status")
	return err
}

// count counts our agent's writes of status since the mark.
func (r *rollout) count(mark kit.Mark, during sample) error {
	prefix := applicationPrefix + r.rolling.name
	writes, err := mark.FindNaming([]string{prefix}, kit.By(kit.LocalAgent), func(request kit.Request) bool {
		return strings.HasPrefix(request.Object.Name, prefix) && request.Object.Resource == "configmaps" && request.Verb == "patch"
	})
	if err != nil {
		return err
	}
	during["status-writes/Application"] = float64(len(writes)*r.rolling.perApplication) / float64(r.rolling.size)
	return nil
}
