package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/krake-observer/krake-observer/test/bench/workload"
	"github.com/krake-observer/krake-observer/test/program"
)

// managers is the number of field managers that the drifter uses, so that none seems to
// contention over a field.
const managers = 20

// drifter changes fields of the objects of a set, one at a time for each object, and
// watches until they are restored.
type drifter struct {
	w        *world
	set      *set
	patience time.Duration
	watching sync.WaitGroup
	// end ends the watch.
	end context.CancelFunc
	// blind is closed when the watch has ended, and lack is the reason.
	blind chan struct{}
	lack  error

	// free has the objects without a drift.
	free chan int

	mu     sync.Mutex
	open   map[string]*drift
	closed []*drift
	// events counts the events of the watch; relapsed counts those with a wrong field
	// that the drifter had not changed.
	events, relapsed, unrepaired int
}

// drift is one change with its outcome.
type drift struct {
	object      int
	leaf, value string
	// seen is when the watch showed it, and back when the watch showed the right value again.
	seen, back time.Time
	// drifted and repaired are the object at these times.
	drifted, repaired runtime.Object
	done              chan struct{}
}

// newDrifter starts the watch.
func (w *world) newDrifter(ctx context.Context, s *set) (*drifter, error) {
	now, err := w.metadata.Resource(s.kind.Resource).List(ctx, metav1.ListOptions{LabelSelector: s.selector(), Limit: 1})
	if err != nil {
		return nil, err
	}
	d := &drifter{w: w, set: s, patience: time.Minute, free: make(chan int, s.size), open: map[string]*drift{}, blind: make(chan struct{})}
	ctx, d.end = context.WithCancel(ctx)
	events, err := d.look(ctx, now.ResourceVersion)
	if err != nil {
		d.end()
		return nil, err
	}
	for _, i := range rand.Perm(s.size) {
		d.free <- i
	}
	d.watching.Go(func() { d.follow(ctx, events, now.ResourceVersion) })
	return d, nil
}

// stop ends the watch.
func (d *drifter) stop() {
	d.end()
	d.watching.Wait()
}

// follow receives the events. If the API server ends the watch, because the machine is too
// busy, it continues from the last version.
func (d *drifter) follow(ctx context.Context, events watch.Interface, version string) {
	defer close(d.blind)
	for {
		if version, d.lack = d.drain(events, version); d.lack != nil || ctx.Err() != nil {
			return
		}
		if events, d.lack = d.look(ctx, version); d.lack != nil {
			return
		}
	}
}

func (d *drifter) look(ctx context.Context, from string) (watch.Interface, error) {
	events, err := d.set.kind.Watch(ctx, d.w.client, metav1.NamespaceAll, metav1.ListOptions{
		LabelSelector: d.set.selector(), ResourceVersion: from, AllowWatchBookmarks: true,
	})
	if err != nil {
		return nil, fmt.Errorf("watch the drifts: %w", err)
	}
	return events, nil
}

// drain receives the events of one watch, and returns the last version.
func (d *drifter) drain(events watch.Interface, version string) (string, error) {
	defer events.Stop()
	for event := range events.ResultChan() {
		now := time.Now()
		about, err := meta.Accessor(event.Object)
		if err != nil {
			return "", fmt.Errorf("watch the drifts: %w", apierrors.FromObject(event.Object))
		}
		if version = about.GetResourceVersion(); event.Type != watch.Bookmark {
			d.take(about.GetName(), event.Object, now)
		}
	}
	return version, nil
}

// take handles an event.
func (d *drifter) take(name string, object runtime.Object, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events++
	one := d.open[name]
	if one == nil {
		if len(d.set.kind.Drifted(object)) > 0 {
			d.relapsed++
		}
		return
	}
	switch d.set.kind.Values(object)[one.leaf] {
	case one.value:
		if one.seen.IsZero() {
			one.seen, one.drifted = now, object
		}
	case workload.Kept:
		if !one.seen.IsZero() {
			one.back, one.repaired = now, object
			delete(d.open, name)
			close(one.done)
		}
	}
}

// run makes this many drifts with this concurrency. Each lane makes the next one as
// soon as the previous one is repaired.
func (d *drifter) run(ctx context.Context, drifts, concurrency int) error {
	var begun atomic.Int64
	return program.Each(ctx, concurrency, concurrency, func(ctx context.Context, _ int) error {
		for int(begun.Add(1)) <= drifts {
			if err := d.one(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// storm drifts every object once, with this concurrency, and waits only at the end for
// the repairs.
func (d *drifter) storm(ctx context.Context, concurrency int) error {
	repairs := make(chan *drift, d.set.size)
	err := program.Each(ctx, d.set.size, concurrency, func(ctx context.Context, _ int) error {
		one, err := d.beginAny(ctx)
		repairs <- one
		return err
	})
	if err != nil {
		return err
	}
	close(repairs)
	end := time.After(d.patience)
	for one := range repairs {
		if repaired, err := d.await(ctx, one, end); err != nil {
			return err
		} else if !repaired {
			return fmt.Errorf("the storm is not over after %s: %d drifts are left", d.patience, d.left())
		}
	}
	return nil
}

// beginAny drifts an object that has no drift.
func (d *drifter) beginAny(ctx context.Context) (*drift, error) {
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case i := <-d.free:
		return d.begin(ctx, i)
	}
}

func (d *drifter) left() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.open)
}

// one makes a drift and waits until it is repaired.
func (d *drifter) one(ctx context.Context) error {
	one, err := d.beginAny(ctx)
	if err != nil {
		return err
	}
	repaired, err := d.await(ctx, one, time.After(d.patience))
	if err == nil && !repaired {
		err = d.revert(ctx, one.object)
	}
	d.free <- one.object
	return err
}

// await waits for the repair of a drift, and reports false if the end comes first.
func (d *drifter) await(ctx context.Context, one *drift, end <-chan time.Time) (repaired bool, err error) {
	select {
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case <-d.blind:
		return false, d.lack
	case <-end:
		return false, nil
	case <-one.done:
		d.keep(one)
		return true, nil
	}
}

func (d *drifter) keep(one *drift) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = append(d.closed, one)
}

// begin drifts an object: another leaf than the last time, with another manager. It
// also changes a leaf that no contender guards.
func (d *drifter) begin(ctx context.Context, i int) (*drift, error) {
	s := d.set
	times := s.drifted[i]
	s.drifted[i]++
	one := &drift{object: i, leaf: workload.Leaf(times % s.kind.Leaves), value: fmt.Sprintf("drift-%d", times), done: make(chan struct{})}
	patch, err := s.kind.Patch(map[string]string{one.leaf: one.value, workload.Free: one.value})
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	d.open[s.object(i)] = one
	d.mu.Unlock()
	_, err = s.kind.Write(ctx, d.w.client, s.namespace(i), s.object(i), patch,
		metav1.PatchOptions{FieldManager: fmt.Sprintf("drifter-%d", times/s.kind.Leaves%managers)})
	return one, err
}

// revert restores an object that was not repaired.
func (d *drifter) revert(ctx context.Context, i int) error {
	s := d.set
	d.mu.Lock()
	d.unrepaired++
	delete(d.open, s.object(i))
	d.mu.Unlock()
	var all []string
	for leaf := range s.kind.Leaves {
		all = append(all, workload.Leaf(leaf))
	}
	patch, err := s.kind.Repair(all)
	if err != nil {
		return err
	}
	_, err = s.kind.Write(ctx, d.w.client, s.namespace(i), s.object(i), patch, metav1.PatchOptions{FieldManager: "drifter"})
	return err
}

// strayed counts the repairs that changed more than the drifted leaf.
func (d *drifter) strayed() (int, error) {
	count := 0
	for _, one := range d.closed {
		before, err := d.compared(one.drifted, one.leaf)
		if err != nil {
			return 0, err
		}
		after, err := d.compared(one.repaired, one.leaf)
		if err != nil {
			return 0, err
		}
		if !equality.Semantic.DeepEqual(before, after) {
			count++
		}
	}
	return count, nil
}

// compared returns an object without the leaf, and without the fields that each write
// changes.
func (d *drifter) compared(object runtime.Object, leaf string) (map[string]any, error) {
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object.DeepCopyObject())
	if err != nil {
		return nil, err
	}
	for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
		unstructured.RemoveNestedField(tree, "metadata", field)
	}
	for _, path := range [][]string{
		{"data", leaf},
		{"spec", "template", "metadata", "annotations", leaf},
	} {
		unstructured.RemoveNestedField(tree, path...)
	}
	return tree, nil
}
