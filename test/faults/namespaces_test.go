package faults

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/test/kit"
)

// A namespace is deleted with all its objects. It is gone, and the agent does not fight for its objects meanwhile. The test has the cluster to itself,
// because the namespace controller backs off when it is slow.
func TestDeletedNamespaceIsLetGo(t *testing.T) {
	const (
		many = 20
		most = 50 // calls for an Application
	)
	l := newLane(t, "namespace")
	l.proxy.Intercept(nil)
	apps, err := l.crowd(t.Context(), many)
	kit.Must(t, err)
	kit.Must(t, l.awaitAll(t.Context(), apps))

	begin, start := l.proxy.Mark(), time.Now()
	kit.Must(t, env.CoreV1().Namespaces().Delete(t.Context(), l.namespace, metav1.DeleteOptions{}))
	kit.Must(t, l.await(t.Context(), func(ctx context.Context) error {
		live, err := env.Find(ctx, kit.Namespaces, "", l.namespace)
		if live != nil {
			return errors.New("the namespace is still there")
		}
		return err
	}))
	took := time.Since(start)
	calls, refused := 0, 0
	for _, call := range l.proxy.Since(begin) {
		if call.Namespace != l.namespace {
			continue
		}
		calls++
		if call.Verb == "create" && !call.IsEvent() && !call.Accepted() {
			refused++
		}
	}
	t.Logf("gone after %s, %d calls for %d Applications, %d creations refused", took.Round(100*time.Millisecond), calls, many, refused)
	if calls >= most*many {
		t.Errorf("%d calls for %d Applications, want fewer than %d for each", calls, many, most)
	}
}
