package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

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
