// Package inspect has the commands that show Applications: get, describe, diff, history and blame.
package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/internal/cli/apps"
	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/cli/view"
	"github.com/krake-observer/krake-observer/pkg/application"
)

// Commands returns the commands of this package.
func Commands(e *env.Environment) []*cobra.Command {
	return []*cobra.Command{newBlameCommand(e), newDescribeCommand(e), newDiffCommand(e), newGetCommand(e), newHistoryCommand(e)}
}

func newGetCommand(e *env.Environment) *cobra.Command {
	var o getOptions
	command := &cobra.Command{
		Use:   "get [NAME]...",
		Short: "List Applications: state, readiness, drifts",
		Long: `List Applications: state, readiness, drifts.

STATE is the state that the agent has written, or, where that does not apply:
  NotAdmitted       the webhook has not admitted the Application, so no agent sees it
  Pending           its agent has not reported on it yet
  AgentUnreachable  its agent does not renew its Lease on the hub (to see this takes the
                    right to read Leases in namespace ` + application.AgentsNamespace + `)
  UnknownFormat     it has a format version that this program does not know
READY is the condition Ready, and Unknown if that is about an older spec.
DRIFTS is the number of drifts in the history (12+: it has dropped older ones), with the
age of the last one, or with the number of open fields: they differ now, and are not
repaired.

With -o json and -o yaml, the output for one name is an Application, and for several an
ApplicationList, of ` + documentVersion + `. Its fields keep their names.`,
		Example: `  # Those of the namespace, and those of all
  kubectl krake get
  kubectl krake get -A

  # Two of them, with mode, hold and problem, as they change
  kubectl krake get web shop -o wide -w

  # Those that are not ready
  kubectl krake get -A -o json | jq '.items[] | select(.ready != "True").metadata.name'`,
		ValidArgsFunction: apps.CompleteNames(e),
		RunE: func(command *cobra.Command, names []string) error {
			if err := o.Resolve(e, names); err != nil {
				return err
			}
			if o.watch {
				w := watcher{Environment: e, options: o, known: known{}, said: map[string]line{}, table: env.NewTable(e.Out, env.PainterFor(e.Out))}
				return following(command.Context(), e, o.Scope, w.changed, w.looked)
			}
			return printApplications(command.Context(), e, o)
		},
	}
	o.AddTo(command)
	o.output.AddTo(command, env.AsTable, env.AsWide, env.AsJSON, env.AsYAML)
	command.Flags().BoolVarP(&o.watch, "watch", "w", false, "watch, and print changes")
	return command
}

func printApplications(ctx context.Context, e *env.Environment, o getOptions) error {
	items, failure := o.Read(ctx, e)
	if failure != nil && len(items) == 0 {
		return failure
	}
	apps.ReadHolds(ctx, e, items)
	beats, now := apps.HeartbeatsOf(ctx, e, items), e.Now()
	if o.output.IsDocument() {
		return cmp.Or(env.PrintDocument(e.Out, o.output.Value, o.document(items, beats, now)), failure)
	}
	if len(items) == 0 {
		fmt.Fprintln(e.ErrOut, o.NoneFound())
		return nil
	}
	rows := [][]env.Cell{o.header()}
	for _, i := range items {
		rows = append(rows, o.row(view.OverviewOf(i, beats, now), now))
	}
	return cmp.Or(env.NewTable(e.Out, env.PainterFor(e.Out)).Print(rows...), failure)
}

// watcher prints changes.
type watcher struct {
	*env.Environment

	options getOptions
	known   known
	said    map[string]line // by the keys of Applications
	table   *env.Table
	beats   apps.Heartbeats
	// begun: the first list is printed. headed: so are the names of the columns.
	begun, headed bool
}

// line is what was printed of an Application; of a document also its version.
type line struct {
	view.Overview

	version string
}

func (w *watcher) changed(ctx context.Context, c apps.Change) error {
	apps.ReadHolds(ctx, w.Environment, c.Items)
	changed, gone := w.known.take(c)
	if !w.begun {
		w.begun = true
		if err := w.missing(); err != nil {
			return err
		}
		if len(w.options.Names) == 0 && len(changed) == 0 {
			fmt.Fprintln(w.ErrOut, w.options.NoneFound())
		}
	}
	if slices.ContainsFunc(changed, w.isNews) {
		w.beats = apps.HeartbeatsOf(ctx, w.Environment, w.known.items())
	}
	return w.tell(changed, gone)
}

// looked prints which agents are no longer heard, or are heard again.
func (w *watcher) looked(ctx context.Context) error {
	w.beats = apps.HeartbeatsOf(ctx, w.Environment, w.known.items())
	return w.tell(w.known.items(), nil)
}

// isNews reports whether the Lease of an Application's agent may not have been read yet.
func (w *watcher) isNews(i apps.Item) bool {
	former, isSaid := w.said[i.Key()]
	return !isSaid || former.State == view.StateNotAdmitted || former.Cluster != view.OverviewOf(i, apps.Heartbeats{}, w.Now()).Cluster
}

// missing is the error of names that are not there when the watch begins.
func (w *watcher) missing() error {
	var failures []error
	for _, name := range w.options.Names {
		if _, ok := w.known[w.options.Namespace+"/"+name]; !ok {
			failures = append(failures, apps.NotFound(w.options.Namespace, name))
		}
	}
	return errors.Join(failures...)
}

// tell prints the Applications whose line has changed since it was printed.
func (w *watcher) tell(changed, gone []apps.Item) error {
	now := w.Now()
	var rows [][]env.Cell
	for _, i := range changed {
		saying := line{Overview: view.OverviewOf(i, w.beats, now)}
		if w.options.output.IsDocument() {
			saying.version = i.Stored.ResourceVersion
		}
		if former, isSaid := w.said[i.Key()]; isSaid && former == saying {
			continue
		}
		w.said[i.Key()] = saying
		if w.options.output.IsDocument() {
			if err := w.document(i, now); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, w.options.row(saying.Overview, now))
	}
	for _, i := range gone {
		delete(w.said, i.Key())
		v := view.OverviewOf(i, w.beats, now)
		v.State, v.Ready, v.Message = view.StateDeleted, metav1.ConditionUnknown, ""
		rows = append(rows, w.options.row(v, now))
	}
	if len(rows) == 0 || w.options.output.IsDocument() {
		return nil
	}
	if !w.headed {
		w.headed, rows = true, append([][]env.Cell{w.options.header()}, rows...)
	}
	return w.table.Print(rows...)
}

func (w *watcher) document(i apps.Item, now time.Time) error {
	if w.options.output.Value == env.AsYAML {
		if _, err := io.WriteString(w.Out, "---\n"); err != nil {
			return err
		}
	}
	return env.PrintDocument(w.Out, w.options.output.Value, documentOf(i, w.beats, now))
}
