package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/test/bench/workload"
	"github.com/krake-observer/krake-observer/test/program"
)

const (
	// manager is the field manager of all repairs.
	manager = "floor"
	// workers limits the concurrent repairs.
	workers = 64
)

// repairer guards the objects of a set.
type repairer struct {
	kind     workload.Kind
	clients  workload.Clients
	selector string
}

// guard repairs the objects that the watch shows. The watch begins with all objects, so
// that an earlier drift is repaired, too.
func (r repairer) guard(ctx context.Context) error {
	repairs, ctx := errgroup.WithContext(ctx)
	watching := func(options metav1.ListOptions) (watch.Interface, error) {
		return r.kind.Watch(ctx, r.clients, metav1.NamespaceAll, options)
	}
	repairs.SetLimit(workers + 1)
	repairs.Go(func() error {
		return r.follow(ctx, watching, func(object runtime.Object) {
			if leaves := r.kind.Drifted(object); len(leaves) > 0 {
				repairs.Go(func() error { return r.repair(ctx, object, leaves) })
			}
		})
	})
	return repairs.Wait()
}

// follow passes on each object of a watch, and opens a new watch when the API server
// ends it.
func (r repairer) follow(ctx context.Context, begin func(metav1.ListOptions) (watch.Interface, error), take func(runtime.Object)) error {
	for {
		events, err := begin(metav1.ListOptions{LabelSelector: r.selector})
		if err != nil {
			return fmt.Errorf("watch: %w", err)
		}
		for event := range events.ResultChan() {
			switch event.Type {
			case watch.Added, watch.Modified:
				take(event.Object)
			case watch.Error:
				return errors.FromObject(event.Object)
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func (r repairer) repair(ctx context.Context, object runtime.Object, leaves []string) error {
	patch, err := r.kind.Repair(leaves)
	if err != nil {
		return err
	}
	about, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	_, err = r.kind.Write(ctx, r.clients, about.GetNamespace(), about.GetName(), patch, metav1.PatchOptions{FieldManager: manager})
	if err != nil {
		return fmt.Errorf("repair: %w", err)
	}
	return nil
}

// decode decodes the events to unstructured trees.
func (r repairer) decode(ctx context.Context) error {
	watching := func(options metav1.ListOptions) (watch.Interface, error) {
		return r.clients.Dynamic.Resource(r.kind.Resource).Watch(ctx, options)
	}
	return r.follow(ctx, watching, func(runtime.Object) {})
}

// poll reads each object separately, at different times.
func (r repairer) poll(ctx context.Context, config *rest.Config, every time.Duration) error {
	listed, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	all, err := listed.Resource(r.kind.Resource).List(ctx, metav1.ListOptions{LabelSelector: r.selector})
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	polls, ctx := errgroup.WithContext(ctx)
	for i, object := range all.Items {
		polls.Go(func() error {
			if err := program.Pause(ctx, every*time.Duration(i)/time.Duration(len(all.Items))); err != nil {
				return err
			}
			for {
				if err := r.look(ctx, object.Namespace, object.Name); err != nil {
					return err
				}
				if err := program.Pause(ctx, every); err != nil {
					return err
				}
			}
		})
	}
	return polls.Wait()
}

func (r repairer) look(ctx context.Context, namespace, name string) error {
	object, err := r.kind.Get(ctx, r.clients, namespace, name)
	if err != nil {
		return fmt.Errorf("get: %w", err)
	}
	if leaves := r.kind.Drifted(object); len(leaves) > 0 {
		return r.repair(ctx, object, leaves)
	}
	return nil
}
