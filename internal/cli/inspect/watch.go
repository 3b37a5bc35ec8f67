package inspect

import (
	"context"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/krake-observer/krake-observer/internal/cli/apps"
	"github.com/krake-observer/krake-observer/internal/cli/env"
)

// following calls changed with all Applications, and then with each change. It calls looked
// at each [apps.BeatsInterval]. It ends when the context ends or a call fails.
func following(ctx context.Context, e *env.Environment, s apps.Scope, changed func(context.Context, apps.Change) error, looked func(context.Context) error) error {
	ticker := time.NewTicker(apps.BeatsInterval)
	defer ticker.Stop()
	group, ctx := errgroup.WithContext(ctx)
	changes := make(chan apps.Change)
	group.Go(func() error { return apps.Follow(ctx, e, s, changes) })
	group.Go(func() error {
		for {
			var err error
			select {
			case c, ok := <-changes:
				if !ok {
					return nil
				}
				err = changed(ctx, c)
			case <-ticker.C:
				err = looked(ctx)
			}
			if err != nil {
				return err
			}
		}
	})
	return group.Wait()
}

// known has the last seen version of the Applications, by their keys.
type known map[string]apps.Item

// take records a change. It returns the new and changed Applications, and those that are gone,
// both sorted.
func (k known) take(c apps.Change) (changed, gone []apps.Item) {
	present := map[string]bool{}
	for _, i := range c.Items {
		former, known := k[i.Key()]
		present[i.Key()] = true
		switch {
		case c.Gone && known:
			gone = append(gone, i)
			delete(k, i.Key())
		case !c.Gone && (!known || former.Stored.ResourceVersion != i.Stored.ResourceVersion):
			changed = append(changed, i)
			k[i.Key()] = i
		}
	}
	for key, former := range k {
		if c.Listed && !present[key] {
			gone = append(gone, former)
			delete(k, key)
		}
	}
	slices.SortFunc(gone, apps.ByKey)
	return changed, gone
}

// items returns all of them, sorted.
func (k known) items() []apps.Item { return slices.SortedFunc(maps.Values(k), apps.ByKey) }
