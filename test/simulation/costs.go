package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/program"
)

// layout is how agents read the Applications.
type layout struct {
	name string
	// namespace returns the namespace that the agent of a cluster reads.
	namespace func(i int) string
}

func layouts() []layout {
	return []layout{
		{"a namespace for each cluster", clusterOf},
		{"all namespaces, by label", func(int) string { return metav1.NamespaceAll }},
	}
}

// cost is the hub's cost of an operation.
type cost struct {
	layout   string
	watchers int
	// cpu is the CPU time of the API server, and etcd that of etcd, for each operation.
	// took is the median of the durations, slow the 99th percentile.
	cpu, etcd, took, slow time.Duration
}

// bench measures the cost of writes and lists for the hub. The agents do not run.
type bench struct {
	hub      *hub
	client   kubernetes.Interface
	metadata metadata.Interface
	clusters int
}

// costName is the name of the written ConfigMaps. They are no Applications, but have
// the same size and labels.
const costName = "cost"

// prepare creates a ConfigMap for each cluster.
func (b *bench) prepare(ctx context.Context) error {
	return program.Each(ctx, b.clusters, atOnce, func(ctx context.Context, i int) error {
		cm := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: costName, Labels: map[string]string{application.HolderLabel(clusterOf(i)): "true"}},
			Data:       map[string]string{"text": strings.Repeat("0123456789", 300), "count": ""},
		}
		_, err := b.client.CoreV1().ConfigMaps(clusterOf(i)).Create(ctx, cm, metav1.CreateOptions{})
		return err
	})
}

// writes measures writes to the ConfigMaps of all clusters in turn, while this many
// agents would watch. A write ends when all its watches have received it.
func (b *bench) writes(ctx context.Context, in layout, watchers, writes int) (cost, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	heard, err := b.watch(ctx, in, watchers, writes)
	if err != nil {
		return cost{}, err
	}
	defer heard.stop()
	write := func(ctx context.Context, i int) error {
		patch := fmt.Appendf(nil, `{"data":{"count":"%d %d"}}`, time.Now().UnixNano(), i)
		_, err := b.client.CoreV1().ConfigMaps(clusterOf(i%b.clusters)).Patch(ctx, costName, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}
	return b.cost(ctx, in, watchers, writes, write, func() error { return heard.await(ctx, b.toBeHeard(watchers, writes)) })
}

// toBeHeard returns how many of the writes are to a watched cluster.
func (b *bench) toBeHeard(watchers, writes int) int {
	return writes/b.clusters*watchers + min(writes%b.clusters, watchers)
}

// lists measures lists of metadata, as agents use them for their comparison.
func (b *bench) lists(ctx context.Context, in layout, times int) (cost, error) {
	list := func(ctx context.Context, i int) error {
		_, err := b.metadata.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(in.namespace(i%b.clusters)).
			List(ctx, metav1.ListOptions{LabelSelector: application.HolderLabel(clusterOf(i % b.clusters))})
		return err
	}
	return b.cost(ctx, in, 0, times, list, func() error { return nil })
}

// cost measures repeated operations, until they have ended.
func (b *bench) cost(
	ctx context.Context, in layout, watchers, times int, do func(context.Context, int) error, end func() error,
) (cost, error) {
	before, err := b.hub.read(ctx)
	if err != nil {
		return cost{}, err
	}
	took := make([]time.Duration, times)
	err = program.Each(ctx, times, atOnce, func(ctx context.Context, i int) error {
		start := time.Now()
		err := do(ctx, i)
		took[i] = time.Since(start)
		return err
	})
	if err != nil {
		return cost{}, err
	}
	if err := end(); err != nil {
		return cost{}, err
	}
	after, err := b.hub.read(ctx)
	passed := after.since(before)
	slices.Sort(took)
	return cost{
		layout: in.name, watchers: watchers, took: quantile(took, 0.5), slow: quantile(took, 0.99),
		cpu: passed.processes[apiServer].CPU / time.Duration(times), etcd: passed.processes[etcd].CPU / time.Duration(times),
	}, err
}

// quantile returns the value that this part of the sorted values does not exceed.
func quantile(sorted []time.Duration, part float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(part*float64(len(sorted)-1))]
}

// listeners are open watches.
type listeners struct {
	watches []watch.Interface
	heard   chan struct{}
	all     sync.WaitGroup
}

// watch opens the watches of this many agents from now on. Each has a buffer for the
// events: the API server would end a slow watch.
func (b *bench) watch(ctx context.Context, in layout, watchers, events int) (*listeners, error) {
	l := &listeners{heard: make(chan struct{}, events), watches: make([]watch.Interface, watchers)}
	now, err := b.client.CoreV1().ConfigMaps(clusterOf(0)).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, err
	}
	err = program.Each(ctx, watchers, atOnce, func(_ context.Context, i int) (err error) {
		l.watches[i], err = b.client.CoreV1().ConfigMaps(in.namespace(i)).Watch(ctx, metav1.ListOptions{
			LabelSelector: application.HolderLabel(clusterOf(i)), ResourceVersion: now.ResourceVersion, AllowWatchBookmarks: true,
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("watch as %d agents: %w", watchers, err)
	}
	for _, w := range l.watches {
		l.all.Go(func() { l.listen(w) })
	}
	return l, nil
}

func (l *listeners) listen(w watch.Interface) {
	for event := range w.ResultChan() {
		if event.Type == watch.Modified {
			l.heard <- struct{}{}
		}
	}
}

// await waits until this many events were received.
func (l *listeners) await(ctx context.Context, events int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("not all watches have heard of all writes"))
	defer cancel()
	for range events {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.heard:
		}
	}
	return nil
}

func (l *listeners) stop() {
	for _, w := range l.watches {
		w.Stop()
	}
	l.all.Wait()
}
