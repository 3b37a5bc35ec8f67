package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// changes are watched changes with their times of arrival: a step reads them after its
// kubectl has ended.
type changes struct{ arrived chan arrival }

type arrival struct {
	watch.Event
	at time.Time
}

// backlog is the number of changes that can arrive while kubectl runs.
const backlog = 1000

// follow watches the object of a resource with the Application's name.
func (d *demo) follow(ctx context.Context, resource schema.GroupVersionResource) (*changes, error) {
	return d.watch(ctx, resource, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()})
}

// change follows the object of a resource, and runs kubectl.
func (d *demo) change(ctx context.Context, resource schema.GroupVersionResource, arguments ...string) (*changes, error) {
	changes, err := d.follow(ctx, resource)
	if err != nil {
		return nil, err
	}
	return changes, d.kubectl(ctx, arguments...)
}

// watch watches until the step ends.
func (d *demo) watch(ctx context.Context, resource schema.GroupVersionResource, options metav1.ListOptions) (*changes, error) {
	watcher, err := d.client.Resource(resource).Namespace(namespace).Watch(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", resource.Resource, err)
	}
	c := &changes{arrived: make(chan arrival, backlog)}
	go func() {
		defer close(c.arrived)
		for event := range watcher.ResultChan() {
			c.arrived <- arrival{event, time.Now()}
		}
	}()
	return c, nil
}

// until waits for a state of the object and returns when it arrived.
func (c *changes) until(ctx context.Context, what string, reached func(*unstructured.Unstructured) bool) (time.Time, error) {
	return c.untilEvent(ctx, what, func(event watch.Event) bool {
		object, ok := event.Object.(*unstructured.Unstructured)
		return ok && reached(object)
	})
}

func (c *changes) untilEvent(ctx context.Context, what string, reached func(watch.Event) bool) (time.Time, error) {
	for {
		select {
		case <-ctx.Done():
			return time.Time{}, fmt.Errorf("wait until %s: %w", what, ctx.Err())
		case change, open := <-c.arrived:
			if !open {
				return time.Time{}, fmt.Errorf("wait until %s: the watch ended", what)
			}
			if reached(change.Event) {
				return change.at, nil
			}
		}
	}
}
