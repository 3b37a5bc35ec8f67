package faults

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

var stages = definition{group: "stages.krake-tests.example", kind: "Stage", plural: "stages"}

// Threat A45 of the security specification: a manifest names a namespace for a kind that is in none. The
// object is created and repaired where it belongs, and then nothing is written.
func TestNamespaceOfAClusterScopedKindIsIgnored(t *testing.T) {
	t.Parallel()
	const still = 5 * time.Second
	l := newLane(t, "a45", "--scope=cluster")
	l.proxy.Intercept(nil)
	must(t, stages.grant(t.Context()))
	must(t, stages.define(t.Context(), "Cluster"))
	a := l.newApp()
	must(t, l.await(t.Context(), func(ctx context.Context) error {
		_, err := env.client.Resource(stages.resource()).List(ctx, metav1.ListOptions{})
		return err
	}))
	must(t, a.create(t.Context(), []object{stages.object(a, l.namespace)}))
	must(t, l.await(t.Context(), a.settled))
	l.idle(t, "once it is created", still)

	name := a.Name + "-stages"
	must(t, change(t.Context(), stages.resource(), types.NamespacedName{Name: name}, `{"spec": {"title": "two"}}`))
	must(t, l.await(t.Context(), func(ctx context.Context) error {
		live, err := env.client.Resource(stages.resource()).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if title, _, _ := unstructured.NestedString(live.Object, "spec", "title"); title != "one" {
			return fmt.Errorf("the title is %q", title)
		}
		return a.settled(ctx)
	}))
	l.idle(t, "once it is repaired", still)

	must(t, a.delete(t.Context()))
	must(t, l.await(t.Context(), func(ctx context.Context) error {
		_, err := env.client.Resource(stages.resource()).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			return a.gone(ctx)
		case err != nil:
			return err
		}
		return errors.New("the object is still there")
	}))
}

// idle complains about writes in a time in which there is nothing to do. The
// status may be five seconds late.
func (l *lane) idle(t *testing.T, what string, window time.Duration) {
	t.Helper()
	must(t, l.await(t.Context(), func(context.Context) error {
		if quiet := l.proxy.Quiet(); quiet < 6*time.Second {
			return fmt.Errorf("%s: quiet for %s only", what, quiet)
		}
		return nil
	}))
	begin := l.proxy.Mark()
	select {
	case <-t.Context().Done():
	case <-time.After(window):
	}
	for _, call := range l.proxy.Since(begin) {
		if call.IsWrite() {
			t.Errorf("%s: %s", what, call)
		}
	}
}
