// Floor is the minimal repairer that the load bench compares with. It watches the
// objects of a set. For an object with wrong leaves, it sends one PATCH of these
// leaves. It has no cache, no history, no ownership of objects and no memory of its
// repairs.
//
//	floor --kubeconfig FILE --kind configmap --set drift
package main

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/krake-observer/krake-observer/internal/program"
	"github.com/krake-observer/krake-observer/test/bench/workload"
)

const (
	// manager is the field manager of all repairs.
	manager = "floor"
	// workers limits the concurrent repairs.
	workers = 64
)

func main() {
	options := new(workload.Options)
	program.Main("floor", options, func(ctx context.Context) error {
		config, kind, err := options.Read()
		if err != nil {
			return err
		}
		client, err := workload.NewClient(config)
		if err != nil {
			return err
		}
		if err := (repairer{kind, client, workload.SetLabel + "=" + options.Set}).guard(ctx); ctx.Err() == nil {
			return err
		}
		return nil // an interrupt is the usual end
	})
}

// repairer guards the objects of a set.
type repairer struct {
	kind     workload.Kind
	client   kubernetes.Interface
	selector string
}

// guard repairs the objects that the watch shows. The watch begins with all objects, so
// that an earlier drift is repaired, too.
func (r repairer) guard(ctx context.Context) error {
	repairs, ctx := errgroup.WithContext(ctx)
	repairs.SetLimit(workers + 1)
	repairs.Go(func() error {
		return r.follow(ctx, func(object runtime.Object) {
			if leaves := r.kind.Drifted(object); len(leaves) > 0 {
				repairs.Go(func() error { return r.repair(ctx, object, leaves) })
			}
		})
	})
	return repairs.Wait()
}

// follow passes on each object of a watch, and opens a new watch when the API server
// ends it.
func (r repairer) follow(ctx context.Context, take func(runtime.Object)) error {
	for {
		events, err := r.kind.Watch(ctx, r.client, metav1.NamespaceAll, metav1.ListOptions{LabelSelector: r.selector})
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
	_, err = r.kind.Write(ctx, r.client, about.GetNamespace(), about.GetName(), patch, metav1.PatchOptions{FieldManager: manager})
	if err != nil {
		return fmt.Errorf("repair: %w", err)
	}
	return nil
}
