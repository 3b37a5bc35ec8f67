package cli

import (
	"maps"
	"strings"
	"time"

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

// document is that of the one Application that is named, or else a list.
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

// applicationDocument is what get prints of one Application. The status is the stored one; the
// fields above it are what it amounts to.
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

// documentMetadata identifies the ConfigMap. Managed fields and what was applied are left to
// kubectl.
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

// ours returns the annotations that are about the Application. Those of others may contain all
// of the ConfigMap, as kubectl apply stores it.
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
