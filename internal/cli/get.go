package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// getOptions are the flags of get.
type getOptions struct {
	scope

	output outputFlag
	watch  bool
}

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
				return e.watchApplications(command.Context(), o)
			}
			return e.getApplications(command.Context(), o)
		},
	}
	o.addTo(command)
	o.output.addTo(command, asTable, asWide, asJSON, asYAML)
	command.Flags().BoolVarP(&o.watch, "watch", "w", false, "go on, and print what changes")
	return command
}

func (e *environment) getApplications(ctx context.Context, o getOptions) error {
	items, failure := e.read(ctx, o.scope)
	if failure != nil && len(items) == 0 {
		return failure
	}
	e.lookAtHolds(ctx, items)
	beats, now := e.heartbeatsOr(ctx, items), e.now()
	if o.output.isDocument() {
		return cmp.Or(e.printDocuments(o, items, beats, now), failure)
	}
	if len(items) == 0 {
		fmt.Fprintln(e.ErrOut, noneFound(o.scope))
		return nil
	}
	rows := [][]cell{o.header()}
	for _, i := range items {
		rows = append(rows, o.row(overviewOf(i, beats, now), now))
	}
	return cmp.Or(newTable(e.Out, painterFor(e.Out)).print(rows...), failure)
}

// noneFound says it as kubectl does.
func noneFound(s scope) string {
	text := "No Applications found"
	if s.selector != "" {
		text += " whose labels match"
	}
	if s.namespace == metav1.NamespaceAll {
		return text
	}
	return text + " in " + s.namespace + " namespace."
}

// printDocuments prints one that is named as it is, and others as a list.
func (e *environment) printDocuments(o getOptions, items []item, beats heartbeats, now time.Time) error {
	documents := make([]applicationDocument, 0, len(items))
	for _, i := range items {
		documents = append(documents, documentOf(i, beats, now))
	}
	if len(o.names) == 1 {
		return printDocument(e.Out, o.output.value, documents[0])
	}
	return printDocument(e.Out, o.output.value, documentList[applicationDocument]{documentVersion, "ApplicationList", documents})
}

func (o getOptions) header() []cell {
	header := textCells("NAME", "STATE", "READY", "DRIFTS", "CLUSTER", "AGE")
	if o.all {
		header = append(textCells("NAMESPACE"), header...)
	}
	if o.output.value == asWide {
		header = append(header, textCells("MODE", "REPAIRED", "MESSAGE")...)
	}
	return header
}

func (o getOptions) row(v overview, now time.Time) []cell {
	var row []cell
	if o.all {
		row = textCells(v.namespace)
	}
	row = append(row, cell{text: v.name}, v.stateCell(), v.readyCell(), v.drifts.cell(now), cell{text: v.cluster}, cell{text: age(v.created, now)})
	if o.output.value == asWide {
		row = append(row, v.modeCell(now), cell{text: agoOrNever(v.drifts.repaired, now)}, cell{text: v.message})
	}
	return row
}

// applicationDocument is what get prints of one. The status is that which is stored; the
// fields above it are what it comes to.
type applicationDocument struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Metadata   documentMetadata `json:"metadata"`

	Cluster string                 `json:"cluster"`
	State   string                 `json:"state"`
	Ready   metav1.ConditionStatus `json:"ready"`
	Message string                 `json:"message,omitempty"`
	Mode    application.Mode       `json:"mode,omitempty"`
	// HeldUntil is the hold of the whole Application, HeldObjects how many objects are
	// held by an annotation of their own.
	HeldUntil   *metav1.Time `json:"heldUntil,omitempty"`
	HeldObjects int          `json:"heldObjects"`
	// Drifts is how often anything has drifted, at least, OpenDrifts how many fields
	// differ now and are left so.
	Drifts       int          `json:"drifts"`
	OpenDrifts   int          `json:"openDrifts"`
	LastDrift    *metav1.Time `json:"lastDrift,omitempty"`
	LastRepaired *metav1.Time `json:"lastRepaired,omitempty"`

	Status application.Status `json:"status"`
}

// documentMetadata identifies the ConfigMap. Who wrote which of its fields, and what was
// applied, are kubectl's to show.
type documentMetadata struct {
	Namespace         string            `json:"namespace"`
	Name              string            `json:"name"`
	UID               types.UID         `json:"uid,omitempty"`
	ResourceVersion   string            `json:"resourceVersion,omitempty"`
	CreationTimestamp metav1.Time       `json:"creationTimestamp"`
	DeletionTimestamp *metav1.Time      `json:"deletionTimestamp,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	Annotations       map[string]string `json:"annotations,omitempty"`
}

func documentOf(i item, beats heartbeats, now time.Time) applicationDocument {
	v, cm := overviewOf(i, beats, now), i.stored
	document := applicationDocument{
		APIVersion: documentVersion, Kind: "Application",
		Metadata: documentMetadata{
			Namespace: cm.Namespace, Name: cm.Name, UID: cm.UID, ResourceVersion: cm.ResourceVersion,
			CreationTimestamp: cm.CreationTimestamp, DeletionTimestamp: cm.DeletionTimestamp, Labels: cm.Labels, Annotations: ours(cm.Annotations),
		},
		Cluster: v.cluster, State: v.state, Ready: v.ready, Message: v.message, Mode: v.mode,
		HeldUntil: orNever(v.heldUntil), HeldObjects: v.held,
		Drifts: v.drifts.count, OpenDrifts: v.drifts.open, LastDrift: orNever(v.drifts.last), LastRepaired: orNever(v.drifts.repaired),
	}
	if i.app != nil {
		document.Status = i.app.Status
	}
	return document
}

// ours are the annotations that are about the Application. Those of others may hold all
// of the ConfigMap, as kubectl apply keeps it.
func ours(annotations map[string]string) map[string]string {
	found := map[string]string{}
	for name, value := range annotations {
		if strings.HasPrefix(name, application.Prefix) {
			found[name] = value
		}
	}
	return found
}

func orNever(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t}
}
