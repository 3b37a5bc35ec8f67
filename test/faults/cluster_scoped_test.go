package faults

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/test/kit"
)

var stages = definition{group: "stages.krake-tests.example", kind: "Stage", plural: "stages"}

// Threat A45 of the security specification: a manifest has a namespace for a cluster-scoped kind. The
// object is created and repaired where it belongs, and then nothing is written.
func TestNamespaceOfAClusterScopedKindIsIgnored(t *testing.T) {
	t.Parallel()
	const still = 5 * time.Second
	l := newLane(t, "a45", "--scope=cluster")
	l.proxy.Intercept(nil)
	kit.Must(t, stages.grant(t.Context()))
	kit.Must(t, stages.define(t.Context(), "Cluster"))
	a := l.newApp()
	kit.Must(t, l.await(t.Context(), func(ctx context.Context) error {
		_, err := env.Dynamic.Resource(stages.resource()).List(ctx, metav1.ListOptions{})
		return err
	}))
	kit.Must(t, a.create(t.Context(), []object{stages.object(a, l.namespace)}))
	kit.Must(t, l.await(t.Context(), a.settled))
	l.idle(t, "once it is created", still)

	name := a.Name + "-stages"
	kit.Must(t, change(t.Context(), stages.resource(), types.NamespacedName{Name: name}, `{"spec": {"title": "two"}}`))
	kit.Must(t, l.await(t.Context(), func(ctx context.Context) error {
		live, err := env.Find(ctx, stages.resource(), "", name)
		if title := kit.Field(live, "spec", "title"); err == nil && title != "one" {
			return fmt.Errorf("the title is %v", title)
		}
		return errors.Join(err, a.settled(ctx))
	}))
	l.idle(t, "once it is repaired", still)

	kit.Must(t, a.delete(t.Context()))
	kit.Must(t, l.await(t.Context(), func(ctx context.Context) error {
		live, err := env.Find(ctx, stages.resource(), "", name)
		if live != nil {
			return errors.New("the object is still there")
		}
		return errors.Join(err, a.gone(ctx))
	}))
}

// idle reports writes within a time in which there is no work. The status may be five
// seconds late.
func (l *lane) idle(t *testing.T, what string, window time.Duration) {
	t.Helper()
	kit.Must(t, l.await(t.Context(), func(context.Context) error {
		if quiet := l.proxy.Quiet(); quiet < 6*time.Second {
			return fmt.Errorf("%s: quiet for %s only", what, quiet)
		}
		return nil
	}))
	begin := l.proxy.Mark()
	kit.Must(t, sleep(t.Context(), window))
	for _, call := range l.proxy.Since(begin) {
		if call.IsWrite() {
			t.Errorf("%s: %s", what, call)
		}
	}
}
