package strict

import (
	"context"
	"errors"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/krake-observer/krake-observer/test/kit"
)

// narrow limits Applications to their namespaces. wide allows objects in all
// namespaces, and cluster-scoped ones.
var narrow, wide *world

func TestMain(m *testing.M) {
	kit.Suite{
		Name:  "strict",
		Long:  "two installations",
		Start: start,
		Logs:  func() []string { return append(narrow.installation.Logs(), wide.installation.Logs()...) },
		Check: func(context.Context) error { return errors.Join(narrow.checkWrites(), wide.checkWrites()) },
		Stop: func() error {
			var failures []error
			for _, w := range []*world{narrow, wide} {
				if w != nil {
					failures = append(failures, w.Stop())
				}
			}
			return errors.Join(failures...)
		},
	}.Main(m)
}

// start starts both worlds at once. Their installations are cluster-wide, so that each
// has its own control plane.
func start(ctx context.Context) error {
	var group errgroup.Group
	group.Go(func() (err error) {
		narrow, err = newWorld(ctx, "strict")
		return err
	})
	group.Go(func() (err error) {
		wide, err = newWorld(ctx, "platform", "--scope=cluster")
		return err
	})
	return group.Wait()
}
