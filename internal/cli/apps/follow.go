package apps

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/pkg/application"
)

// Change is what a watch of Applications reports.
type Change struct {
	// Listed: the items are all Applications. If not, they are one Application that is new,
	// has changed, or is gone.
	Listed, Gone bool
	Items        []Item
}

// Follow sends all Applications, and then each change, until the context ends. Each watch ends after some
// minutes, and another one continues from there. If that is too late, another list follows.
func Follow(ctx context.Context, e *env.Environment, s Scope, changes chan<- Change) error {
	defer close(changes)
	version := ""
	for {
		var err error
		if version == "" {
			var items []Item
			if items, version, err = List(ctx, e, s.Namespace, s.options()); err == nil {
				items = slices.DeleteFunc(items, func(i Item) bool { return !s.has(i) })
				send(ctx, changes, Change{Listed: true, Items: items})
			}
		}
		if err == nil {
			version, err = watchFrom(ctx, e, s, version, changes)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("watch the Applications: %w", err)
		}
		select { // a pause, in case each watch ends at once
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

func send(ctx context.Context, changes chan<- Change, c Change) {
	select {
	case changes <- c:
	case <-ctx.Done():
	}
}

// watchFrom sends changes until the watch ends. It returns the version to continue from, which is empty if
// only a list can tell what has changed.
func watchFrom(ctx context.Context, e *env.Environment, s Scope, version string, changes chan<- Change) (string, error) {
	client, _, err := e.Applications()
	if err != nil {
		return "", err
	}
	options := s.options()
	options.ResourceVersion, options.AllowWatchBookmarks = version, true
	watcher, err := client.ConfigMaps(s.Namespace).Watch(ctx, options)
	if err != nil {
		return "", UnlessExpired(err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		cm, ok := event.Object.(*corev1.ConfigMap)
		if !ok {
			return "", UnlessExpired(apierrors.FromObject(event.Object))
		}
		version = cm.ResourceVersion
		if i := ItemOf(cm); event.Type != watch.Bookmark && s.has(i) {
			send(ctx, changes, Change{Gone: event.Type == watch.Deleted || !application.IsApplication(cm), Items: []Item{i}})
		}
	}
	return version, nil
}

// UnlessExpired returns no error for a version that is too old for a watch: another list follows.
func UnlessExpired(err error) error {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return nil
	}
	return err
}
