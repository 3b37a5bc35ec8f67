// Package events writes Events, also while the API server cannot store them for a moment. client-go writes an Event
// again if there is no answer, and gives it up if the answer is that the server has failed. So a change of etcd's
// leader would cost the Events of that second.
package events

import (
	"context"
	"fmt"

	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	client "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
)

// NewBroadcaster returns a broadcaster of Events, which writes nothing before it is started. It tries an Event
// twelve times, ten seconds apart.
func NewBroadcaster(config *rest.Config) (events.EventBroadcaster, error) {
	typed, err := client.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return events.NewBroadcaster(sink{&events.EventSinkImpl{Interface: typed}}), nil
}

// Start begins to write, with the logger and the values of the context. The end of the context does not end it, but
// stop does, which waits for no Event.
func Start(ctx context.Context, broadcasters ...events.EventBroadcaster) (stop func(), err error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop = func() {
		for _, broadcaster := range broadcasters {
			broadcaster.Shutdown()
		}
		cancel()
	}
	for _, broadcaster := range broadcasters {
		if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
			stop()
			return nil, err
		}
	}
	return stop, nil
}

// sink hides from the broadcaster that an error is an answer, if the next try may succeed.
type sink struct{ events.EventSink }

// Create implements events.EventSink.
func (s sink) Create(ctx context.Context, event *eventsv1.Event) (*eventsv1.Event, error) {
	stored, err := s.EventSink.Create(ctx, event)
	return stored, again(err)
}

// Patch implements events.EventSink.
func (s sink) Patch(ctx context.Context, event *eventsv1.Event, data []byte) (*eventsv1.Event, error) {
	stored, err := s.EventSink.Patch(ctx, event, data)
	return stored, again(err)
}

// again returns an error that the broadcaster takes for a missing answer, if the API server has failed. A server with
// too many requests is not asked again: the client has waited already as it asked.
func again(err error) error {
	if apierrors.IsInternalError(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsServiceUnavailable(err) {
		return fmt.Errorf("try again: %w", err)
	}
	return err
}
