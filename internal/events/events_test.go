package events

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"

	"github.com/krake-observer/krake-observer/test/check"
)

// failing fails the first attempts to write.
type failing struct {
	events.EventSink

	with    error
	left    int
	tries   int
	written []*eventsv1.Event
}

func (f *failing) Create(_ context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	f.tries++
	if f.left--; f.left >= 0 {
		return nil, f.with
	}
	f.written = append(f.written, event)
	return event, nil
}

func (f *failing) Patch(ctx context.Context, event *eventsv1.Event, _ []byte) (*eventsv1.Event, error) {
	return f.Create(ctx, event)
}

func TestEventsAreWrittenAgain(t *testing.T) {
	resource := schema.GroupResource{Group: "events.k8s.io", Resource: "events"}
	tests := []struct {
		why            string
		with           error
		left           int
		tries, written int
	}{
		{"no error", nil, 0, 1, 1},
		{"etcd does not answer", apierrors.NewInternalError(errors.New("etcdserver: request timed out")), 2, 3, 1},
		{"it takes too long", apierrors.NewTimeoutError("too long", 1), 1, 2, 1},
		{"it asks for patience", apierrors.NewServerTimeout(resource, "create", 1), 1, 2, 1},
		{"there are too many requests", apierrors.NewTooManyRequests("later", 1), 1, 1, 0},
		{"it is not ready", apierrors.NewServiceUnavailable("later"), 1, 2, 1},
		{"no answer, which client-go repeats itself", errors.New("connection refused"), 1, 2, 1},
		{"the namespace ends", apierrors.NewForbidden(resource, "web", errors.New("it is being terminated")), 1, 1, 0},
		{"it is wrong", apierrors.NewBadRequest("wrong"), 1, 1, 0},
		{"it is there", apierrors.NewAlreadyExists(resource, "web"), 1, 1, 0},
		{"it fails for ever", apierrors.NewServiceUnavailable("never"), 1000, 12, 0},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				to := &failing{with: test.with, left: test.left}
				broadcaster := events.NewBroadcaster(sink{to})
				stop, err := Start(t.Context(), broadcaster)
				check.Must(t, err)
				recorder := broadcaster.NewRecorder(scheme.Scheme, "krake")
				about := &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "demo", Name: "web"}
				recorder.Eventf(about, nil, corev1.EventTypeNormal, "Created", "Reconcile", "it is there")
				<-time.After(5 * time.Minute) // of the clock of this test
				check.Equal(t, "tries", test.tries, to.tries)
				check.Equal(t, "written", test.written, len(to.written))
				stop()
				<-time.After(time.Minute)
			})
		})
	}
}
