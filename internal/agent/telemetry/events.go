package telemetry

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/status"
)

// duplicateAgent is the reason of the Event of an agent that must not act.
const duplicateAgent = "DuplicateAgent"

// ReportRefusal reports why an agent must not act, by an Event of the Lease on the hub
// that it does not get: that is where its users look.
func ReportRefusal(hub events.EventRecorder, cluster, why string) {
	lease := &corev1.ObjectReference{
		APIVersion: "coordination.k8s.io/v1", Kind: "Lease",
		Namespace: application.AgentsNamespace, Name: application.HubLease(cluster),
	}
	hub.Eventf(lease, nil, corev1.EventTypeWarning, duplicateAgent, "Acquire", "%s", cut(why))
}

// EventMeaning is an Event that agents write, and its meaning.
type EventMeaning struct {
	Type, Reason string
	// On is its subject, in words.
	On      string
	Meaning string
}

// EventMeanings are all Events that agents write.
func EventMeanings() []EventMeaning {
	var all []EventMeaning
	for _, one := range status.Actions() {
		all = append(all, EventMeaning{eventType(one.Action), string(one.Action), "Application, and the object on its cluster", one.Meaning})
	}
	return append(all, EventMeaning{
		corev1.EventTypeWarning, duplicateAgent, "Lease of the cluster on the hub", "another target, or another agent, has the name of this agent's cluster",
	})
}
