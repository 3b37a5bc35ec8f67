package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/program"
)

const (
	// atOnce is the number of concurrent requests of this program.
	atOnce = 8
	// patience limits every wait.
	patience = 40 * time.Minute
	// mostAlone limits the measurement of the hub without agents. mostStill limits the
	// time without writes that shows the end of all work. Neither is longer than the
	// idle time.
	mostAlone = 30 * time.Second
	mostStill = 10 * time.Second
)

// The names of the measured processes.
const (
	apiServer = "kube-apiserver"
	etcd      = "etcd"
	webhook   = "webhook-1"
)

// auditPolicy logs nothing: the metrics count the requests.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: None
`

// world has everything that is measured.
type world struct {
	Options

	hub      *hub
	client   kubernetes.Interface
	metadata metadata.Interface
	fleet    *fleet
	bench    *bench
	// kubeconfig is the administrator's, folder has the clusters' files.
	kubeconfig, folder string
	log                io.Writer
}

func run(ctx context.Context, options Options, out, log io.Writer) (err error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	c, err := cluster.Start(ctx, cluster.Options{Log: log, AuditPolicy: auditPolicy})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	logger := logr.FromSlogHandler(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	if _, err := installation.InstallWith(ctx, c, installation.Options{Hub: true}, log); err != nil {
		return err
	}
	w, err := newWorld(c, options, log)
	if err != nil {
		return err
	}
	target, err := cluster.Start(ctx, cluster.Options{Log: log, AuditPolicy: auditPolicy})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Stop()) }()
	w.fleet = &fleet{target: target.RESTConfig(), logger: logger, fail: fail, asked: counts{}}
	defer w.fleet.halt()
	measured, err := w.measure(ctx)
	measured.write(out) // an incomplete result is shown, too
	if err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	return measured.broken()
}

func newWorld(c *cluster.Cluster, options Options, log io.Writer) (*world, error) {
	config := c.RESTConfig()
	client, err := kubernetes.NewForConfig(asAgents(config))
	if err != nil {
		return nil, err
	}
	listed, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	measured := &hub{client: client}
	for _, process := range c.Processes() {
		switch process.Name() {
		case apiServer, etcd, webhook:
			measured.processes = append(measured.processes, process)
		}
	}
	return &world{
		Options: options, hub: measured, client: client, metadata: listed,
		bench:      &bench{hub: measured, client: client, metadata: listed, clusters: options.Clusters},
		kubeconfig: c.Kubeconfig(), folder: filepath.Join(c.Dir(), "spokes"), log: log,
	}, nil
}

// asAgents reads ConfigMaps as protobuf, as the agents' watches do.
func asAgents(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return config
}

// measure runs all steps.
func (w *world) measure(ctx context.Context) (results, error) {
	r := results{Options: w.Options}
	steps := []struct {
		what string
		do   func(context.Context, *results) error
	}{
		{"a hub without agents", w.alone},
		{"clusters", w.enrol},
		{"agents without Applications", w.begin},
		{"the Applications", w.create},
		{"nothing happens", w.idle},
		{"drifts", w.drift},
		{"all agents start again", w.again},
		{"without agents", w.end},
		{"what writes cost", w.writes},
		{"what lists cost", w.lists},
	}
	for _, step := range steps {
		fmt.Fprintf(w.log, "simulation: %s\n", step.what)
		if err := step.do(ctx, &r); err != nil {
			return r, fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return r, nil
}

// alone measures the hub without agents.
func (w *world) alone(ctx context.Context, r *results) (err error) {
	r.alone, err = w.window(ctx, min(mostAlone, w.Idle))
	return err
}

// window measures the hub for a time.
func (w *world) window(ctx context.Context, long time.Duration) (window, error) {
	return w.while(ctx, func() error { return program.Pause(ctx, long) })
}

// while measures the hub while do runs.
func (w *world) while(ctx context.Context, do func() error) (window, error) {
	before, err := w.hub.read(ctx)
	if err != nil {
		return window{}, err
	}
	targets := w.fleet.requests()
	if err := do(); err != nil {
		return window{}, err
	}
	after, err := w.hub.read(ctx)
	return window{after.since(before), after.at.Sub(before.at), w.fleet.requests().less(targets)}, err
}

func (w *world) enrol(ctx context.Context, r *results) error {
	start := time.Now()
	err := w.fleet.enrol(ctx, w.Clusters, w.kubeconfig, w.folder)
	r.enrolled = time.Since(start)
	return err
}

func (w *world) begin(ctx context.Context, r *results) (err error) {
	r.started, err = w.while(ctx, func() error {
		w.fleet.start(ctx)
		return w.await(ctx, w.allAct(nil))
	})
	r.bare = heap()
	return err
}

func (w *world) create(ctx context.Context, r *results) (err error) {
	r.created, err = w.while(ctx, func() error {
		start := time.Now()
		if err := w.createAll(ctx); err != nil {
			return err
		}
		r.admitted = time.Since(start)
		if err := w.await(ctx, w.allRun); err != nil {
			return err
		}
		r.running = time.Since(start)
		return w.settle(ctx)
	})
	return err
}

func (w *world) createAll(ctx context.Context) error {
	return program.Each(ctx, w.Applications, atOnce, func(ctx context.Context, i int) error {
		cm, err := applicationOf(i, w.Clusters)
		if err != nil {
			return err
		}
		return persist(ctx, func() error {
			_, err := w.client.CoreV1().ConfigMaps(cm.Namespace).Create(ctx, cm, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				return nil // created by an attempt whose answer was lost
			}
			return err
		})
	})
}

// persist repeats an operation that a busy hub, or its webhook, has refused.
func persist(ctx context.Context, do func() error) error {
	for {
		err := do()
		isPassing := apierrors.IsInternalError(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err)
		if !isPassing {
			return err
		}
		if err := program.Pause(ctx, time.Second); err != nil {
			return err
		}
	}
}

func (w *world) idle(ctx context.Context, r *results) (err error) {
	if r.idle, err = w.window(ctx, w.Idle); err != nil {
		return err
	}
	leases, err := w.leases(ctx)
	r.busiest = busiest(leases)
	return err
}

// busiest returns the number of Leases that were renewed in the busiest second.
func busiest(leases []coordinationv1.Lease) (most int) {
	renewed := map[int64]int{}
	for _, lease := range leases {
		if at := lease.Spec.RenewTime; at != nil {
			renewed[at.Unix()]++
			most = max(most, renewed[at.Unix()])
		}
	}
	return most
}

func (w *world) drift(ctx context.Context, r *results) (err error) {
	r.drift, err = w.while(ctx, func() (err error) {
		r.repairs, err = w.fleet.drift(ctx, w.Applications, w.PerMinute/100*float64(w.Applications), w.Drift)
		return err
	})
	if err != nil {
		return err
	}
	return w.settle(ctx)
}

// again restarts all agents at the same time, as when the hub comes back.
func (w *world) again(ctx context.Context, r *results) error {
	former, err := w.holders(ctx)
	if err != nil {
		return err
	}
	w.fleet.halt()
	r.again, err = w.while(ctx, func() error {
		start := time.Now()
		w.fleet.start(ctx)
		err := w.await(ctx, w.allAct(former))
		r.acting = time.Since(start)
		if err != nil {
			return err
		}
		return w.settle(ctx)
	})
	return err
}

// end ends the agents, to measure their part of the memory of this process.
func (w *world) end(_ context.Context, r *results) error {
	r.full = heap()
	w.fleet.halt()
	r.empty = heap()
	return nil
}

func (w *world) writes(ctx context.Context, r *results) error {
	if err := w.bench.prepare(ctx); err != nil {
		return err
	}
	for _, in := range layouts() {
		for _, watchers := range w.watchers() {
			fmt.Fprintf(w.log, "simulation: %s, %d watches\n", in.name, watchers)
			measured, err := w.bench.writes(ctx, in, watchers, w.Writes)
			if err != nil {
				return err
			}
			r.writes = append(r.writes, measured)
		}
	}
	return nil
}

// watchers returns the numbers of watches to measure: as many as clusters, and fewer.
func (w *world) watchers() []int {
	if w.Clusters < 4 {
		return []int{0, w.Clusters}
	}
	return []int{0, w.Clusters / 4, w.Clusters}
}

func (w *world) lists(ctx context.Context, r *results) error {
	for _, in := range layouts() {
		measured, err := w.bench.lists(ctx, in, w.Clusters)
		if err != nil {
			return err
		}
		r.lists = append(r.lists, measured)
	}
	return nil
}

// allRun reports whether all Applications have the state RUNNING.
func (w *world) allRun(ctx context.Context) (bool, error) {
	left, err := w.client.CoreV1().ConfigMaps(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		LabelSelector: application.ClusterLabel + "," + application.StateLabel + "!=" + string(application.StateRunning), Limit: 1,
	})
	if err != nil {
		return false, err
	}
	return len(left.Items) == 0, nil
}

// holders returns the holders of the clusters' Leases on the hub.
func (w *world) holders(ctx context.Context) (map[string]string, error) {
	leases, err := w.leases(ctx)
	holders := map[string]string{}
	for _, lease := range leases {
		if lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" {
			holders[lease.Name] = *lease.Spec.HolderIdentity
		}
	}
	return holders, err
}

func (w *world) leases(ctx context.Context) ([]coordinationv1.Lease, error) {
	leases, err := w.client.CoordinationV1().Leases(application.AgentsNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return leases.Items, nil
}

// allAct reports whether each cluster has a new agent that acts.
func (w *world) allAct(former map[string]string) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		now, err := w.holders(ctx)
		if err != nil {
			return false, err
		}
		for i := range w.Clusters {
			lease := application.HubLease(clusterOf(i))
			if now[lease] == "" || now[lease] == former[lease] {
				return false, nil
			}
		}
		return true, nil
	}
}

// settle waits until no Application is written for a while.
func (w *world) settle(ctx context.Context) error {
	return w.await(ctx, func(ctx context.Context) (bool, error) {
		meanwhile, err := w.window(ctx, min(mostStill, w.Idle))
		return meanwhile.requests.sum("patch configmaps", "create events", "patch events") == 0, err
	})
}

// await calls done once a second until it reports true.
func (w *world) await(ctx context.Context, done func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		var yes bool
		err := persist(ctx, func() (err error) {
			yes, err = done(ctx)
			return err
		})
		if yes || err != nil {
			return err
		}
		if err := program.Pause(ctx, time.Second); err != nil {
			return err
		}
	}
}
