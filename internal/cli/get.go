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

STATE is the state that the agent has written, or, where that says nothing now:
  NotAdmitted       the webhook has not seen the Application, so that no agent does
  Pending           its agent has not looked at it yet
  AgentUnreachable  its agent does not renew its Lease on the hub (to see this takes the
                    right to read Leases in namespace ` + application.AgentsNamespace + `)
  UnknownFormat     it is of a format version that this program does not know
READY is the condition Ready, and Unknown if it speaks of an older spec.
DRIFTS is how often something has drifted, as far as the history has room for it
(12+: it has forgotten others), with the age of the last one, or with how many fields
are open: they differ now, and are left as they are.

With -o json and -o yaml one that is named is printed as an Application, several as an
ApplicationList, of ` + documentVersion + `. Its fields keep their names.`,
		Example: `  # Those of the namespace, and those of all
  kubectl krake get
  kubectl krake get -A

  # Two of them, with mode, hold and what is wrong, as they change
  kubectl krake get web shop -o wide -w

  # What is not ready
  kubectl krake get -A -o json | jq '.items[] | select(.ready != "True").metadata.name'`,
		ValidArgsFunction: e.completeNames,
		RunE: func(command *cobra.Command, names []string) error {
			if err := e.resolve(&o.scope, names); err != nil {
				return err
			}
			if o.watch {
				w := watcher{environment: e, options: o, known: known{}, said: map[string]line{}, table: newTable(e.Out, painterFor(e.Out))}
				return e.following(command.Context(), o.scope, beatsInterval, w.changed, w.looked)
			}
			return printApplications(command.Context(), e, o)
		},
	}
	o.addTo(command)
	o.output.addTo(command, asTable, asWide, asJSON, asYAML)
	command.Flags().BoolVarP(&o.watch, "watch", "w", false, "go on, and print what changes")
	return command
}

func printApplications(ctx context.Context, e *environment, o getOptions) error {
	items, failure := e.read(ctx, o.scope)
	if failure != nil && len(items) == 0 {
		return failure
	}
	e.lookAtHolds(ctx, items)
	beats, now := e.heartbeatsOr(ctx, items), e.now()
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
