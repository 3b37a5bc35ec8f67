package cli

import (
	"maps"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
)

type getOptions struct {
	scope

	output outputFlag
	watch  bool
}

func (o getOptions) header() []cell {
	header := textCells("NAME", "STATE", "READY", "DRIFTS", "CLUSTER", "AGE")
	if o.output.value == asWide {
		header = append(header, textCells("MODE", "REPAIRED", "MESSAGE")...)
	}
	return withNamespace(o.all, "NAMESPACE", header)
}

func (o getOptions) row(v overview, now time.Time) []cell {
	row := []cell{{text: v.name}, v.stateCell(), v.readyCell(), v.drifts.cell(now), {text: v.cluster}, {text: age(v.created, now)}}
	if o.output.value == asWide {
		row = append(row, v.modeCell(now), cell{text: agoOrNever(v.drifts.repaired, now)}, cell{text: v.message})
	}
	return withNamespace(o.all, v.namespace, row)
}

// document returns the document of the one named Application, or a list.
func (o getOptions) document(items []item, beats heartbeats, now time.Time) any {
	documents := make([]applicationDocument, 0, len(items))
	for _, i := range items {
		documents = append(documents, documentOf(i, beats, now))
	}
	if len(o.names) == 1 {
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
