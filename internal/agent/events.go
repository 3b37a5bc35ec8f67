package agent

import (
	"context"

	"k8s.io/client-go/kubernetes/scheme"
	eventsv1 "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
)

// recorders write Events to hub and target. They hold nobody up: a server that
// does not answer misses some.
type recorders struct {
	hub, target  events.EventRecorder
	broadcasters []events.EventBroadcaster
}

// newRecorders makes recorders, which write nothing before they are started.
func newRecorders(hub, target *rest.Config) (*recorders, error) {
	r := &recorders{}
	var err error
	if r.target, err = r.add(target); err != nil {
		return nil, err
	}
	r.hub = r.target
	if hub != target {
		r.hub, err = r.add(hub)
	}
	return r, err
}

func (r *recorders) add(config *rest.Config) (events.EventRecorder, error) {
	client, err := eventsv1.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client})
	r.broadcasters = append(r.broadcasters, broadcaster)
	return broadcaster.NewRecorder(scheme.Scheme, name), nil
}

// start begins to write. stop ends it, when nobody has anything to tell any more.
func (r *recorders) start(ctx context.Context) (stop func(), err error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop = func() {
		for _, broadcaster := range r.broadcasters {
			broadcaster.Shutdown()
		}
		cancel()
	}
	for _, broadcaster := range r.broadcasters {
		if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
			stop()
			return nil, err
		}
	}
	return stop, nil
}
