package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// watcher prints what changes.
type watcher struct {
	*environment

	options getOptions
	known   known
	said    map[string]line // by the keys of Applications
	table   *table
	beats   heartbeats
	// begun: the first list is printed. headed: so are the names of the columns.
	begun, headed bool
}

// line is what was printed of an Application; of a document also its version.
type line struct {
	overview

	version string
}

// changed prints a change.
func (w *watcher) changed(ctx context.Context, c change) error {
	w.lookAtHolds(ctx, c.items)
	changed, gone := w.known.take(c)
	if !w.begun {
		w.begun = true
		if err := w.missing(); err != nil {
			return err
		}
		if len(w.options.names) == 0 && len(changed) == 0 {
			fmt.Fprintln(w.ErrOut, w.options.noneFound())
		}
	}
	if slices.ContainsFunc(changed, w.isNews) {
		w.beats = w.heartbeatsOr(ctx, w.known.items())
	}
	return w.tell(changed, gone)
}

// looked prints which agents are not heard any more, or again.
func (w *watcher) looked(ctx context.Context) error {
	w.beats = w.heartbeatsOr(ctx, w.known.items())
	return w.tell(w.known.items(), nil)
}

// isNews reports whether the Lease of an Application's agent was perhaps not read yet.
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

// tell prints the Applications of which the line is not the one that was printed last.
func (w *watcher) tell(changed, gone []item) error {
	now := w.now()
	var rows [][]cell
	for _, i := range changed {
		saying := line{overview: overviewOf(i, w.beats, now)}
		if w.options.output.isDocument() {
			saying.version = i.stored.ResourceVersion
		}
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
