package right

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/test/check"
)

// granted is a right to act, or the errors that deny it.
type granted struct{ wait, target error }

func (g granted) Wait(ctx context.Context) error { return errors.Join(g.wait, ctx.Err()) }
func (g granted) Target() error                  { return g.target }
func (g granted) Owns(string) bool               { return true }
func (g granted) Grace() time.Duration           { return time.Minute }

// The right to act alone is not enough: the known Applications are first compared with the
// hub's.
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

// askedFor signals when a caller waits for the right.
type askedFor struct {
	granted

	asked chan<- struct{}
}

func (a askedFor) Wait(context.Context) error {
	close(a.asked)
	return nil
}

// Work beside the passes also starts only with the right to act.
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

// Running work gets a little time after the end of the agent, and no more.
func TestOutliving(t *testing.T) {
	ending, end := context.WithCancel(t.Context())
	longer, done := Outlive(ending, 50*time.Millisecond)
	defer done()
	end()
	check.Must(t, longer.Err())
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
