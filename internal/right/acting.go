package right

import (
	"context"
	"time"
)

// Elector is the right to act, as its users need it: a [Leadership], or one that [Confirmed]
// wraps.
type Elector interface {
	Wait(ctx context.Context) error
	Target() error
	Owns(namespace string) bool
	Grace() time.Duration
}

// Confirmed is the right to act on what was compared with the API server.
func Confirmed(grant Elector, compared <-chan struct{}) Elector { return confirmed{grant, compared} }

type confirmed struct {
	Elector

	compared <-chan struct{}
}

// Wait implements Elector.
func (c confirmed) Wait(ctx context.Context) error {
	if err := c.Elector.Wait(ctx); err != nil {
		return err
	}
	select {
	case <-c.compared:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// OnceActing returns a runnable that starts when this replica may act.
func OnceActing(grant Elector, run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := grant.Wait(ctx); err != nil {
			return err // that of the context: the agent ends
		}
		return run(ctx)
	}
}

// Outlive returns a context that ends later than its parent, by the duration. The API
// server may have carried out a request that was cut off, and its result would be lost.
func Outlive(ctx context.Context, grace time.Duration) (longer context.Context, done func()) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	return longer, func() {
		stop()
		cancel()
	}
}
