package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// beatsInterval is how often is looked whether agents are heard while something is
// watched: of their silence no event tells.
const beatsInterval = 15 * time.Second

// watchApplications prints what there is, and then a line for each that has changed.
func (e *environment) watchApplications(ctx context.Context, o getOptions) error {
	w := watcher{environment: e, options: o, known: known{}, said: map[string]line{}, table: newTable(e.Out, painterFor(e.Out))}
	return e.following(ctx, o.scope, beatsInterval, w.changed, w.looked)
}

// following calls changed with what there is, and with each change, and looked once in
// an interval, until the context ends or one of them fails.
func (e *environment) following(ctx context.Context, s scope, interval time.Duration, changed func(context.Context, change) error, looked func(context.Context) error) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	group, ctx := errgroup.WithContext(ctx)
	changes := make(chan change)
	group.Go(func() error { return e.follow(ctx, s, changes) })
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

// watcher prints what changes.
type watcher struct {
	*environment

	options getOptions
	known   known
	said    map[string]line
	table   *table
	beats   heartbeats
	// begun: what there was is printed, headed: below the names of the columns.
	begun, headed bool
}

// line is what was printed of an Application; of a document also of which version.
type line struct {
	overview

	version string
}

func (w *watcher) saying(i item, now time.Time) line {
	s := line{overview: overviewOf(i, w.beats, now)}
	if w.options.output.isDocument() {
		s.version = i.stored.ResourceVersion
	}
	return s
}

// changed takes a change.
func (w *watcher) changed(ctx context.Context, c change) error {
	w.lookAtHolds(ctx, c.items)
	changed, gone := w.known.take(c)
	if !w.begun {
		if w.begun = true; len(w.options.names) > 0 {
			if err := w.missing(); err != nil {
				return err
			}
		} else if len(changed) == 0 {
			fmt.Fprintln(w.ErrOut, noneFound(w.options.scope))
		}
	}
	if slices.ContainsFunc(changed, w.isNews) {
		w.beats = w.heartbeatsOr(ctx, w.known.items())
	}
	return w.tell(changed, gone)
}

// looked tells of agents that are not heard any more, or again.
func (w *watcher) looked(ctx context.Context) error {
	w.beats = w.heartbeatsOr(ctx, w.known.items())
	return w.tell(w.known.items(), nil)
}

// isNews tells of an Application whose agent was perhaps not asked for yet.
func (w *watcher) isNews(i item) bool {
	former, isSaid := w.said[i.key()]
	return !isSaid || former.state == stateNotAdmitted || former.cluster != overviewOf(i, heartbeats{}, w.now()).cluster
}

// missing is the error of names that are not there when the watch begins.
func (w *watcher) missing() error {
	var failures []error
	for _, name := range w.options.names {
		if _, ok := w.known[w.options.namespace+"/"+name]; !ok {
			failures = append(failures, notThere(w.options.namespace, name))
		}
	}
	return errors.Join(failures...)
}

// tell prints of which Applications there is something else to say than was said last.
func (w *watcher) tell(changed, gone []item) error {
	now := w.now()
	var rows [][]cell
	for _, i := range changed {
		saying := w.saying(i, now)
		if former, isSaid := w.said[i.key()]; isSaid && former == saying {
			continue
		}
		w.said[i.key()] = saying
		if w.options.output.isDocument() {
			if err := w.document(i, now); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, w.options.row(saying.overview, now))
	}
	for _, i := range gone {
		delete(w.said, i.key())
		v := overviewOf(i, w.beats, now)
		v.state, v.ready, v.message = stateDeleted, metav1.ConditionUnknown, ""
		rows = append(rows, w.options.row(v, now))
	}
	if len(rows) == 0 || w.options.output.isDocument() {
		return nil
	}
	if !w.headed {
		w.headed, rows = true, append([][]cell{w.options.header()}, rows...)
	}
	return w.table.print(rows...)
}

func (w *watcher) document(i item, now time.Time) error {
	if w.options.output.value == asYAML {
		if _, err := io.WriteString(w.Out, "---\n"); err != nil {
			return err
		}
	}
	return printDocument(w.Out, w.options.output.value, documentOf(i, w.beats, now))
}
