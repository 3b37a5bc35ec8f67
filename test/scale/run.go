package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
)

const (
	// atOnce is how many requests of ours are under way.
	atOnce = 8
	// patience is how long anything may take.
	patience = 30 * time.Minute
	// still is for how long an agent asks for nothing that is done.
	still = 10 * time.Second
)

// auditPolicy leaves the bodies out: requests are counted, not read.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
`

// world is what is measured.
type world struct {
	Options

	client   kubernetes.Interface
	metadata metadata.Interface
	ours     *installation.Installation
	auditLog string
	log      io.Writer
}

func run(ctx context.Context, options Options, out, log io.Writer) (err error) {
	c, err := cluster.Start(ctx, cluster.Options{Log: log, AuditPolicy: auditPolicy})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	ctrl.SetLogger(logr.Discard()) // it would only tell that it was not called
	ours, err := installation.Install(ctx, c, log)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(c.RESTConfig())
	if err != nil {
		return err
	}
	listed, err := metadata.NewForConfig(c.RESTConfig())
	if err != nil {
		return err
	}
	w := &world{Options: options, client: client, metadata: listed, ours: ours, auditLog: c.AuditLog(), log: log}
	measured, err := w.measure(ctx)
	if err != nil {
		return err
	}
	measured.write(out)
	return measured.broken()
}

// measure goes through it all. The agent runs at first.
func (w *world) measure(ctx context.Context) (results, error) {
	r := results{Options: w.Options}
	steps := []struct {
		what string
		do   func(context.Context, *results) error
	}{
		{"an agent without Applications", w.bare},
		{"the Applications", w.create},
		{"an agent that has nothing to go by", w.first},
		{"an agent that starts again", w.again},
		{"a drift", w.repair},
		{"nothing happens", w.idle},
		{"ConfigMaps of somebody else", w.unrelated},
	}
	for _, step := range steps {
		fmt.Fprintf(w.log, "scale: %s\n", step.what)
		if err := step.do(ctx, &r); err != nil {
			return r, fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return r, nil
}

func (w *world) bare(ctx context.Context, r *results) (err error) {
	if r.bare, err = w.memory(ctx); err != nil {
		return err
	}
	return w.ours.StopAgent()
}

func (w *world) create(ctx context.Context, _ *results) error {
	for i := range namespaces {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespaceOf(i)}}
		if _, err := w.client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return each(ctx, w.Applications, func(ctx context.Context, i int) error {
		cm, err := applicationOf(i)
		if err != nil {
			return err
		}
		_, err = w.client.CoreV1().ConfigMaps(namespaceOf(i)).Create(ctx, cm, metav1.CreateOptions{})
		return err
	})
}

func (w *world) first(ctx context.Context, r *results) error {
	since, err := mark(w.auditLog)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := w.ours.StartAgent(ctx); err != nil {
		return err
	}
	if err := w.await(ctx, w.allRun); err != nil {
		return err
	}
	r.took = time.Since(start)
	r.first, err = w.settle(ctx, since)
	return err
}

// again counts what the second agent asks for before there is anything to do.
func (w *world) again(ctx context.Context, r *results) error {
	if err := w.ours.StopAgent(); err != nil {
		return err
	}
	since, err := mark(w.auditLog)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := w.ours.StartAgent(ctx); err != nil {
		return err
	}
	r.ready = time.Since(start)
	r.again, err = w.settle(ctx, since)
	return err
}

// repair shows that the second agent was at work, for all that it did not write.
func (w *world) repair(ctx context.Context, r *results) error {
	since, err := mark(w.auditLog)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := w.drift(ctx); err != nil {
		return err
	}
	r.repaired = time.Since(start)
	_, err = w.settle(ctx, since)
	return err
}

func (w *world) idle(ctx context.Context, r *results) error {
	since, err := mark(w.auditLog)
	if err != nil {
		return err
	}
	if err := pause(ctx, w.Idle); err != nil {
		return err
	}
	if r.idle, err = since.count(); err != nil {
		return err
	}
	r.full, err = w.memory(ctx)
	return err
}

func (w *world) unrelated(ctx context.Context, r *results) error {
	const size = 256 << 10
	err := each(ctx, w.Unrelated, func(ctx context.Context, i int) error {
		cm := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("unrelated-%d", i)},
			Data:       map[string]string{"text": strings.Repeat("unrelated ", size/len("unrelated "))},
		}
		_, err := w.client.CoreV1().ConfigMaps(namespaceOf(i)).Create(ctx, cm, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return err
	}
	r.crowded, err = w.memory(ctx)
	return err
}

func (w *world) memory(ctx context.Context) (int64, error) {
	return memory(ctx, w.ours.AgentProcess(0).PID())
}

// settle waits until the agent has asked for nothing for a while, and gives what
// it has asked for.
func (w *world) settle(ctx context.Context, since audit) (made counts, err error) {
	err = w.await(ctx, func(ctx context.Context) (bool, error) {
		now, err := mark(w.auditLog)
		if err != nil {
			return false, err
		}
		if err := pause(ctx, still); err != nil {
			return false, err
		}
		meanwhile, err := now.count()
		return meanwhile.asked() == 0, err
	})
	if err != nil {
		return nil, err
	}
	return since.count()
}

// allRun tells if the agent says of all Applications that they run.
func (w *world) allRun(ctx context.Context) (bool, error) {
	running, err := w.metadata.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).
		List(ctx, metav1.ListOptions{LabelSelector: application.StateLabel + "=" + string(application.StateRunning)})
	if err != nil {
		return false, err
	}
	fmt.Fprintf(w.log, "scale: %d of %d run\n", len(running.Items), w.Applications)
	return len(running.Items) == w.Applications, nil
}

// drift changes an object and waits until it is repaired.
func (w *world) drift(ctx context.Context) error {
	services := w.client.CoreV1().Services(namespaceOf(0))
	changed, err := services.Patch(ctx, nameOf(0), types.StrategicMergePatchType,
		[]byte(`{"spec": {"selector": {"app": "another"}}}`), metav1.PatchOptions{})
	if err != nil {
		return err
	}
	watch, err := services.Watch(ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=" + nameOf(0), ResourceVersion: changed.ResourceVersion,
	})
	if err != nil {
		return err
	}
	defer watch.Stop()
	for event := range watch.ResultChan() {
		if service, ok := event.Object.(*corev1.Service); ok && service.Spec.Selector["app"] == nameOf(0) {
			return nil
		}
	}
	return errors.Join(errors.New("the watch ended before the repair"), ctx.Err())
}

// await asks once a second until the answer is yes.
func (w *world) await(ctx context.Context, done func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		yes, err := done(ctx)
		if yes || err != nil {
			return err
		}
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
}

// each does something so many times, some of them at once.
func each(ctx context.Context, times int, do func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range times {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}
