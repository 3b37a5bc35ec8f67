package faults

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
)

// crowd creates this many Applications of three objects.
func (l *lane) crowd(ctx context.Context, many int) ([]*app, error) {
	apps := l.newApps(many)
	return apps, each(apps, func(a *app) error { return a.create(ctx, a.objects()) })
}

// newApps returns the lane's next Applications. It creates nothing.
func (l *lane) newApps(many int) []*app {
	apps := make([]*app, many)
	for i := range apps {
		apps[i] = l.newApp()
	}
	return apps
}

// objects returns the three objects of an Application.
func (a *app) objects() []object {
	return []object{a.configMap("1"), a.service(80), a.deployment("main:1")}
}

// awaitAll waits until all Applications run and have their objects.
func (l *lane) awaitAll(ctx context.Context, apps []*app) error {
	for _, a := range apps {
		err := l.await(ctx, func(ctx context.Context) error {
			if err := a.check(ctx, a.objects()); err != nil {
				return err
			}
			return a.settled(ctx)
		})
		if err != nil {
			return fmt.Errorf("Application %s: %w", a, err)
		}
	}
	return nil
}

// each calls do for all Applications, a few at a time.
func each(apps []*app, do func(*app) error) error {
	var group errgroup.Group
	group.SetLimit(4)
	for _, a := range apps {
		group.Go(func() error { return do(a) })
	}
	return group.Wait()
}

// all returns the error of the first Application that fails the check.
func all(apps []*app, check func(*app) error) error {
	for _, a := range apps {
		if err := check(a); err != nil {
			return err
		}
	}
	return nil
}
