package telemetry

import (
	"context"

	"k8s.io/client-go/kubernetes/scheme"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
)

// Recorders write Events to hub and target. They never block a caller, so a server that does
// not answer misses some Events.
type Recorders struct {
	Hub, Target events.EventRecorder

	source       string
	broadcasters []events.EventBroadcaster
}

// NewRecorders makes recorders of a source, which write nothing before they are started.
func NewRecorders(hub, target *rest.Config, source string) (*Recorders, error) {
	r := &Recorders{source: source}
	var err error
	if r.Target, err = r.add(target); err != nil {
		return nil, err
	}
	r.Hub = r.Target
	if hub != target {
		r.Hub, err = r.add(hub)
	}
	return r, err
}

func (r *Recorders) add(config *rest.Config) (events.EventRecorder, error) {
	client, err := eventsclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client})
	r.broadcasters = append(r.broadcasters, broadcaster)
	return broadcaster.NewRecorder(scheme.Scheme, r.source), nil
}

// Start begins to write, with the logger of the context. The end of the context does not stop
// it. stop does, and waits for no Event.
func (r *Recorders) Start(ctx context.Context) (stop func(), err error) {
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
