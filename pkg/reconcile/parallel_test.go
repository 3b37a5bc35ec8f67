package reconcile_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"
	ctrl "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/krake-observer/krake-observer/internal/apply"
	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/reconcile"
	"github.com/krake-observer/krake-observer/test/check"
)

// deployment is a typical Deployment with some 20 fields.
const deployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, labels: {app.kubernetes.io/name: web, app.kubernetes.io/part-of: shop}}
spec:
  replicas: 2
  revisionHistoryLimit: 3
  selector: {matchLabels: {app: web}}
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 10
      containers:
      - name: web
        image: registry.example.com/shop/web:1.27
        args: [--listen, ":8080"]
        ports: [{name: http, containerPort: 8080}]
        resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 128Mi}}
        readinessProbe: {httpGet: {path: /ready, port: http}, periodSeconds: 5}
---
`

// deployments returns a manifest with this many Deployments.
func deployments(count int) string {
	var b strings.Builder
	for i := range count {
		b.WriteString(strings.ReplaceAll(deployment, "NAME", fmt.Sprintf("web-%03d", i)))
	}
	return b.String()
}

// slowClusters is the cluster of a world whose API server answers no call before some are in
// flight, or a time has passed.
type slowClusters struct {
	clusters

	expects  int
	mu       sync.Mutex
	all      sync.Once
	arrived  chan struct{} // closed as soon as the expected calls are in flight
	inFlight int
	most     int
	// begun are the kinds of the calls, with "answer" for each answer, in their order.
	begun []string
	// breaks is the name of the object whose call panics.
	breaks string
}

func newSlowClusters(w *world, expects, slots int) *slowClusters {
	slow := &slowClusters{clusters: clusters{w}, expects: expects, arrived: make(chan struct{})}
	w.Clusters, w.Slots = slow, semaphore.NewWeighted(int64(slots))
	return slow
}

func (s *slowClusters) As(ctx context.Context, account reconcile.Account) (reconcile.Cluster, error) {
	inner, err := s.clusters.As(ctx, account)
	return slowCluster{s, inner}, err
}

func (s *slowClusters) begin(ref manifest.Ref) {
	s.mu.Lock()
	s.inFlight++
	s.most = max(s.most, s.inFlight)
	s.begun = append(s.begun, ref.Kind)
	if s.inFlight == s.expects {
		s.all.Do(func() { close(s.arrived) })
	}
	s.mu.Unlock()
	select {
	case <-s.arrived:
	case <-time.After(50 * time.Millisecond):
	}
	<-time.After(5 * time.Millisecond) // for calls beyond the expected ones
	s.mu.Lock()
	if ref.Name == s.breaks {
		s.mu.Unlock()
		panic("broken at " + ref.Name)
	}
}

// end is called with the lock of begin.
func (s *slowClusters) end() {
	s.inFlight--
	s.begun = append(s.begun, "answer")
	s.mu.Unlock()
}

type slowCluster struct {
	*slowClusters
	reconcile.Cluster
}

func (c slowCluster) Create(ctx context.Context, ref manifest.Ref, object map[string]any) (map[string]any, error) {
	c.begin(ref)
	defer c.end()
	return c.Cluster.Create(ctx, ref, object)
}

func (c slowCluster) Patch(ctx context.Context, ref manifest.Ref, live map[string]any, repair apply.Repair) (map[string]any, error) {
	c.begin(ref)
	defer c.end()
	return c.Cluster.Patch(ctx, ref, live, repair)
}

// drifting returns a reconciled world of Deployments that have all drifted.
func drifting(t *testing.T, count int) *world {
	t.Helper()
	w := running(t, deployments(count), "")
	for i := range count {
		w.write(t, fmt.Sprintf("Deployment web-%03d", i), int64(7), "spec", "replicas")
	}
	return w
}

// The objects of one Application are repaired at the same time, as far as there are slots. No
// decision and no report is lost.
func TestObjectsOfAPassAreRepairedTogether(t *testing.T) {
	for _, c := range []struct{ slots, most int }{{0, 1}, {1, 2}, {5, 6}, {20, 6}} {
		t.Run(fmt.Sprintf("%d slots", c.slots), func(t *testing.T) {
			const count = 6
			w := drifting(t, count)
			slow := newSlowClusters(w, c.most, c.slots)
			reporting := 0
			w.Report = func(_ *application.Application, outcome status.Outcome) {
				if reporting++; reporting != 1 {
					t.Error("two outcomes are reported at once")
				}
				<-time.After(time.Millisecond) // for another one
				w.reports = append(w.reports, outcome.String())
				reporting--
			}
			w.mustReconcile(t)
			check.Equal(t, "calls at once", c.most, slow.most)
			check.Equal(t, "reports", count, len(w.reports))
			check.Equal(t, "drifts in the history", count, len(w.app(t).Status.Drifts))
			w.checkState(t, application.StateRunning)
			check.Equal(t, "all slots were given back", true, w.Slots.TryAcquire(int64(c.slots)))
		})
	}
}

// Objects that are adopted at the same time are all recorded as such, each before it is changed.
func TestObjectsAreAdoptedTogether(t *testing.T) {
	const count = 6
	w := newWorld(t, deployments(count), "")
	w.annotate(application.AdoptAnnotation, true)
	for i := range count {
		name := fmt.Sprintf("web-%03d", i)
		live := theirs("apps/v1", "Deployment", name, nil)
		live["metadata"].(map[string]any)["uid"] = "theirs-" + name
		w.objects["Deployment "+name] = live
	}
	slow := newSlowClusters(w, count, count)
	w.mustReconcile(t)
	check.Equal(t, "calls at once", count, slow.most)
	app := w.app(t)
	check.Equal(t, "recorded objects", count, len(app.Inventory))
	check.Equal(t, "adopted objects", app.Inventory, app.Adopted)
	w.checkReason(t, application.ReconciledCondition, "Reconciled")
}

// Objects of one kind are created at the same time. Those of the next kind wait for them: they
// may need them.
func TestKindsAreCreatedInOrder(t *testing.T) {
	var text strings.Builder
	for i := range 3 {
		fmt.Fprintf(&text, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: config-%d}\ndata: {a: b}\n---\n", i)
	}
	w := newWorld(t, deployments(3)+text.String(), "")
	slow := newSlowClusters(w, 3, 10)
	w.mustReconcile(t)
	want := slices.Concat(slices.Repeat([]string{"ConfigMap"}, 3), slices.Repeat([]string{"answer"}, 3),
		slices.Repeat([]string{"Deployment"}, 3), slices.Repeat([]string{"answer"}, 3))
	check.Equal(t, "calls", want[:6], slow.begun[:6])
	if slices.Contains(slow.begun[6:], "ConfigMap") || len(slow.begun) != len(want) {
		t.Errorf("calls %v", slow.begun)
	}
}

// A panic of one write ends the pass as a panic, which the caller of the loop recovers from, and
// gives back its slot.
func TestPanicOfAWriteIsOneOfThePass(t *testing.T) {
	for _, breaks := range []string{"web-000", "web-002"} { // the last one is written by the pass itself
		w := drifting(t, 3)
		slow := newSlowClusters(w, 3, 2)
		slow.breaks = breaks
		func() {
			defer func() {
				if cause := fmt.Sprint(recover()); !strings.Contains(cause, "broken at "+breaks) || breaks == "web-000" && !strings.Contains(cause, "parallel_test.go") {
					t.Errorf("panic %q", cause)
				}
			}()
			_, _ = w.Reconcile(t.Context(), ctrl.Request{NamespacedName: appName})
		}()
		check.Equal(t, "calls in flight, with the broken one", 1, slow.inFlight)
		check.Equal(t, "all slots were given back", true, w.Slots.TryAcquire(2))
		w.Slots.Release(2)
		slow.breaks = ""
		w.mustReconcile(t)
		w.checkState(t, application.StateRunning)
	}
}
