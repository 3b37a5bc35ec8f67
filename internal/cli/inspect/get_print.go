package inspect

import (
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/internal/cli/apps"
	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/cli/view"
	"github.com/krake-observer/krake-observer/pkg/application"
)

// documentVersion is the apiVersion of documents that -o json and -o yaml print. Their fields
// keep their names.
const documentVersion = "cli." + application.Domain + "/v1"

// documentList is a document with several of one kind.
type documentList[T any] struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Application is the one to which all items belong.
	Application string `json:"application,omitempty"`
	Items       []T    `json:"items"`
}

type getOptions struct {
	apps.Scope

	output env.Output
	watch  bool
}

func (o getOptions) header() []env.Cell {
	header := env.TextCells("NAME", "STATE", "READY", "DRIFTS", "CLUSTER", "AGE")
	if o.output.Value == env.AsWide {
		header = append(header, env.TextCells("MODE", "REPAIRED", "MESSAGE")...)
	}
	return withNamespace(o.All, "NAMESPACE", header)
}

func (o getOptions) row(v view.Overview, now time.Time) []env.Cell {
	row := []env.Cell{{Text: v.Name}, v.StateCell(), v.ReadyCell(), v.Drifts.Cell(now), {Text: v.Cluster}, {Text: env.Age(v.Created, now)}}
	if o.output.Value == env.AsWide {
		row = append(row, v.ModeCell(now), env.Cell{Text: env.AgoOrNever(v.Drifts.Repaired, now)}, env.Cell{Text: v.Message})
	}
	return withNamespace(o.All, v.Namespace, row)
}

// document returns the document of the one named Application, or a list.
func (o getOptions) document(items []apps.Item, beats apps.Heartbeats, now time.Time) any {
	documents := make([]applicationDocument, 0, len(items))
	for _, i := range items {
		documents = append(documents, documentOf(i, beats, now))
	}
	if len(o.Names) == 1 {
		return documents[0]
	}
	return documentList[applicationDocument]{documentVersion, "ApplicationList", "", documents}
}

// applicationDocument is the output of get for one Application. The status is the stored one;
// the fields above it summarize it.
type applicationDocument struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Metadata   documentMetadata `json:"metadata"`

	Cluster string                 `json:"cluster"`
	State   string                 `json:"state"`
	Ready   metav1.ConditionStatus `json:"ready"`
	Message string                 `json:"message,omitempty"`
	Mode    application.Mode       `json:"mode,omitempty"`
	// HeldUntil is the hold of the whole Application, HeldObjects how many objects have their
	// own hold.
	HeldUntil   *metav1.Time `json:"heldUntil,omitempty"`
	HeldObjects int          `json:"heldObjects"`
	// Drifts is the least number of drifts, OpenDrifts how many fields differ now and are not
	// repaired.
	Drifts       int          `json:"drifts"`
	OpenDrifts   int          `json:"openDrifts"`
	LastDrift    *metav1.Time `json:"lastDrift,omitempty"`
	LastRepaired *metav1.Time `json:"lastRepaired,omitempty"`

	Status application.Status `json:"status"`
}

// documentMetadata identifies the ConfigMap. It omits managed fields and the annotation of
// kubectl apply.
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

func documentOf(i apps.Item, beats apps.Heartbeats, now time.Time) applicationDocument {
	v, cm := view.OverviewOf(i, beats, now), i.Stored
	document := applicationDocument{
		APIVersion: documentVersion, Kind: "Application",
		Metadata: documentMetadata{
			Namespace: cm.Namespace, Name: cm.Name, UID: cm.UID, ResourceVersion: cm.ResourceVersion,
			CreationTimestamp: cm.CreationTimestamp, DeletionTimestamp: cm.DeletionTimestamp, Labels: cm.Labels, Annotations: ours(cm.Annotations),
		},
		Cluster: v.Cluster, State: v.State, Ready: v.Ready, Message: v.Message, Mode: v.Mode,
		HeldUntil: orNever(v.HeldUntil), HeldObjects: v.Held,
		Drifts: v.Drifts.Count, OpenDrifts: v.Drifts.Open, LastDrift: orNever(v.Drifts.Last), LastRepaired: orNever(v.Drifts.Repaired),
	}
	if i.App != nil {
		document.Status = i.App.Status
	}
	return document
}

// ours returns the annotations of this project. Others may contain the whole ConfigMap, as
// that of kubectl apply.
func ours(annotations map[string]string) map[string]string {
	found := maps.Clone(annotations)
	maps.DeleteFunc(found, func(name, _ string) bool { return !strings.HasPrefix(name, application.Prefix) })
	return found
}

func orNever(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t}
}

// withNamespace puts the namespace before a row, in a table of all namespaces.
func withNamespace(all bool, namespace string, row []env.Cell) []env.Cell {
	if !all {
		return row
	}
	return slices.Insert(row, 0, env.Cell{Text: namespace})
}
