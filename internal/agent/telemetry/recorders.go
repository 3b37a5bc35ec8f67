package telemetry

import (
	"context"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"

	persistent "github.com/krake-observer/krake-observer/internal/events"
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
	broadcaster, err := persistent.NewBroadcaster(config)
	if err != nil {
		return nil, err
	}
	r.broadcasters = append(r.broadcasters, broadcaster)
	return broadcaster.NewRecorder(scheme.Scheme, r.source), nil
}

// Start begins to write. stop ends it, when no Event follows any more.
func (r *Recorders) Start(ctx context.Context) (stop func(), err error) {
	return persistent.Start(ctx, r.broadcasters...)
}
