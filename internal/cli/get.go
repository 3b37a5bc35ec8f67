package cli

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

	"github.com/krake-observer/krake-observer/pkg/application"
)

func newGetCommand(e *environment) *cobra.Command {
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
		ValidArgsFunction: completeNames(e),
		RunE: func(command *cobra.Command, names []string) error {
			if err := o.resolve(e, names); err != nil {
				return err
			}
			if o.watch {
				w := watcher{environment: e, options: o, known: known{}, said: map[string]line{}, table: newTable(e.Out, painterFor(e.Out))}
				return following(command.Context(), e, o.scope, w.changed, w.looked)
			}
			return printApplications(command.Context(), e, o)
		},
	}
	o.addTo(command)
	o.output.addTo(command, asTable, asWide, asJSON, asYAML)
	command.Flags().BoolVarP(&o.watch, "watch", "w", false, "watch, and print changes")
	return command
}

func printApplications(ctx context.Context, e *environment, o getOptions) error {
	items, failure := o.read(ctx, e)
	if failure != nil && len(items) == 0 {
		return failure
	}
	readHolds(ctx, e, items)
	beats, now := heartbeatsOf(ctx, e, items), e.now()
	if o.output.isDocument() {
		return cmp.Or(printDocument(e.Out, o.output.value, o.document(items, beats, now)), failure)
	}
	if len(items) == 0 {
		fmt.Fprintln(e.ErrOut, o.noneFound())
		return nil
	}
	rows := [][]cell{o.header()}
	for _, i := range items {
		rows = append(rows, o.row(overviewOf(i, beats, now), now))
	}
	return cmp.Or(newTable(e.Out, painterFor(e.Out)).print(rows...), failure)
}

// watcher prints changes.
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

func (w *watcher) changed(ctx context.Context, c change) error {
	readHolds(ctx, w.environment, c.items)
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
		w.beats = heartbeatsOf(ctx, w.environment, w.known.items())
	}
	return w.tell(changed, gone)
}

// looked prints which agents are no longer heard, or are heard again.
func (w *watcher) looked(ctx context.Context) error {
	w.beats = heartbeatsOf(ctx, w.environment, w.known.items())
	return w.tell(w.known.items(), nil)
}

// isNews reports whether the Lease of an Application's agent may not have been read yet.
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

// tell prints the Applications whose line has changed since it was printed.
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
