package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/krake-observer/krake-observer/pkg/application"
)

type change struct {
	// listed: the items are all Applications. If not, they are one Application that is new,
	// has changed, or is gone.
	listed, gone bool
	items        []item
}

// follow sends all Applications, and then each change, until the context ends. Each watch ends after some
// minutes, and another one continues from there. If that is too late, another list follows.
func follow(ctx context.Context, e *environment, s scope, changes chan<- change) error {
	defer close(changes)
	version := ""
	for {
		var err error
		if version == "" {
			var items []item
			if items, version, err = list(ctx, e, s.namespace, s.options()); err == nil {
				items = slices.DeleteFunc(items, func(i item) bool { return !s.has(i) })
				send(ctx, changes, change{listed: true, items: items})
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

func send(ctx context.Context, changes chan<- change, c change) {
	select {
	case changes <- c:
	case <-ctx.Done():
	}
}

// watchFrom sends changes until the watch ends. It returns the version to continue from, which is empty if
// only a list can tell what has changed.
func watchFrom(ctx context.Context, e *environment, s scope, version string, changes chan<- change) (string, error) {
	client, _, err := e.applications()
	if err != nil {
		return "", err
	}
	options := s.options()
	options.ResourceVersion, options.AllowWatchBookmarks = version, true
	watcher, err := client.ConfigMaps(s.namespace).Watch(ctx, options)
	if err != nil {
		return "", unlessExpired(err)
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		cm, ok := event.Object.(*corev1.ConfigMap)
		if !ok {
			return "", unlessExpired(apierrors.FromObject(event.Object))
		}
		version = cm.ResourceVersion
		if i := itemOf(cm); event.Type != watch.Bookmark && s.has(i) {
			send(ctx, changes, change{gone: event.Type == watch.Deleted || !application.IsApplication(cm), items: []item{i}})
		}
	}
	return version, nil
}

// unlessExpired returns no error for a version that is too old for a watch: another list follows.
func unlessExpired(err error) error {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return nil
	}
	return err
}
