package cli

import (
	"context"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// following calls changed with all Applications, and then with each change. It calls looked
// at each [beatsInterval]. It ends when the context ends or a call fails.
func following(ctx context.Context, e *environment, s scope, changed func(context.Context, change) error, looked func(context.Context) error) error {
	ticker := time.NewTicker(beatsInterval)
	defer ticker.Stop()
	group, ctx := errgroup.WithContext(ctx)
	changes := make(chan change)
	group.Go(func() error { return follow(ctx, e, s, changes) })
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
type known map[string]item

// take records a change. It returns the new and changed Applications, and those that are gone,
// both sorted.
func (k known) take(c change) (changed, gone []item) {
	present := map[string]bool{}
	for _, i := range c.items {
		former, known := k[i.key()]
		present[i.key()] = true
		switch {
		case c.gone && known:
			gone = append(gone, i)
			delete(k, i.key())
		case !c.gone && (!known || former.stored.ResourceVersion != i.stored.ResourceVersion):
			changed = append(changed, i)
			k[i.key()] = i
		}
	}
	for key, former := range k {
		if c.listed && !present[key] {
			gone = append(gone, former)
			delete(k, key)
		}
	}
	slices.SortFunc(gone, byKey)
	return changed, gone
}

// items returns all of them, sorted.
func (k known) items() []item { return slices.SortedFunc(maps.Values(k), byKey) }
