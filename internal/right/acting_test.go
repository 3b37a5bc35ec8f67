package right

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// granted is a right to act, or what stands against it.
type granted struct{ wait, target error }

func (g granted) Wait(ctx context.Context) error { return errors.Join(g.wait, ctx.Err()) }
func (g granted) Target() error                  { return g.target }
func (g granted) Grace() time.Duration           { return time.Minute }

// The right to act alone is not enough: first, what is known is compared with
// what there is.
func TestConfirmed(t *testing.T) {
	compared, asked := make(chan struct{}), make(chan struct{})
	ending, end := context.WithCancel(t.Context())
	waited := make(chan error, 1)
	go func() { waited <- Confirmed(askedFor{granted{}, asked}, compared).Wait(ending) }()
	<-asked
	end()
	if err := <-waited; err == nil {
		t.Error("it acts before it has compared")
	}
	close(compared)
	if err := Confirmed(granted{}, compared).Wait(t.Context()); err != nil {
		t.Errorf("it has compared, and does not act: %v", err)
	}
	refused := Confirmed(granted{wait: context.Canceled}, compared)
	if err := refused.Wait(t.Context()); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "canceled") {
		t.Errorf("it acts without the right: %v", err)
	}
}

// askedFor says when it is waited for.
type askedFor struct {
	granted

	asked chan<- struct{}
}

func (a askedFor) Wait(context.Context) error {
	close(a.asked)
	return nil
}

// What is done beside the passes begins with the right to act, too.
func TestOnceActing(t *testing.T) {
	ran := false
	run := func(context.Context) error {
		ran = true
		return errors.New("it failed")
	}
	if err := OnceActing(granted{wait: context.Canceled}, run)(t.Context()); !errors.Is(err, context.Canceled) || ran {
		t.Errorf("without the right: it ran: %v, error %v", ran, err)
	}
	if err := OnceActing(granted{}, run)(t.Context()); err == nil || !ran {
		t.Errorf("with the right: it ran: %v, error %v", ran, err)
	}
}

// What is under way when the agent is to end has a moment more, and no longer.
func TestOutliving(t *testing.T) {
	ending, end := context.WithCancel(t.Context())
	longer, done := Outlive(ending, 50*time.Millisecond)
	defer done()
	end()
	if longer.Err() != nil {
		t.Error("it ends with the other")
	}
	select {
	case <-longer.Done():
	case <-time.After(30 * time.Second):
		t.Error("it does not end")
	}
	longer, done = Outlive(t.Context(), time.Hour)
	done()
	if longer.Err() == nil {
		t.Error("it goes on when the pass is over")
	}
}
