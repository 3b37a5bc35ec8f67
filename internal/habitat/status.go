package habitat

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// Status is the status of a Habitat.
type Status struct {
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// State is the state of the Application, or FAILED if the Habitat is not accepted.
	// Message is the reason for a state that needs attention.
	State   application.State `json:"state,omitempty"`
	Message string            `json:"message,omitempty"`
	// Ready counts Pods: running/desired.
	Ready string `json:"ready,omitempty"`
	// Application is the name of the Application's ConfigMap.
	Application string `json:"application,omitempty"`
	// Peer is the address in the peer file.
	Peer       string             `json:"peer,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Overwritten is the last edit that was reverted.
	Overwritten *Overwritten `json:"overwritten,omitempty"`
}

const (
	// acceptedCondition: the Application has the present spec of the Habitat.
	acceptedCondition = "Accepted"
	// peerFileCondition: the Pods of the namespace can find each other.
	peerFileCondition = "PeerFileReady"
)

// stateReconciling is Krake's name for the state of an Application that changes.
// Agents do not write this state, because it passes.
const stateReconciling application.State = "RECONCILING"

// statusOf reads the status of a Habitat. An unreadable one is replaced.
func statusOf(live *unstructured.Unstructured) Status {
	fields, _ := live.Object["status"].(map[string]any)
	var status Status
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &status); err != nil {
		return Status{}
	}
	return status
}

// nextStatus returns the status that a Habitat should have.
func (s *shared) nextStatus(former Status, live *unstructured.Unstructured, v verdict, peers, file *corev1.ConfigMap) Status {
	status := Status{
		ObservedGeneration: live.GetGeneration(), Conditions: slices.Clone(former.Conditions), Overwritten: former.Overwritten,
	}
	accepted := metav1.ConditionFalse
	if v.reason == reasonAccepted {
		accepted = metav1.ConditionTrue
	}
	s.set(&status, acceptedCondition, accepted, v.reason, v.message)
	s.setApplication(&status, v.application)
	s.setPeer(&status, peers, file)
	if v.reason != reasonAccepted {
		status.State, status.Message = application.StateFailed, cut(v.message)
		if v.reason == reasonPrevious {
			status.State = application.StateDeleting
		}
	}
	return status
}

func (s *shared) set(status *Status, name string, value metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: name, Status: value, Reason: reason, Message: cut(message), ObservedGeneration: status.ObservedGeneration,
		LastTransitionTime: metav1.NewTime(s.now()),
	})
}

// setApplication copies what the agent reports about the Application, if the report is
// about its present spec.
func (s *shared) setApplication(status *Status, cm *corev1.ConfigMap) {
	if cm == nil {
		s.set(status, application.ReadyCondition, metav1.ConditionFalse, "NotAccepted", "there is no Application")
		return
	}
	status.Application = cm.Name
	app, err := application.ReadFor(cm, s.cluster)
	if err != nil {
		s.set(status, application.ReadyCondition, metav1.ConditionUnknown, "Unreadable", "the status of ConfigMap "+cm.Name+" cannot be read")
		return
	}
	status.State = application.State(cutName(string(app.Status.State)))
	if health := app.Status.ContainerHealth; health != nil {
		status.Ready = fmt.Sprintf("%d/%d", health.RunningPods, health.DesiredPods)
	}
	values := []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}
	ready := meta.FindStatusCondition(app.Status.Conditions, application.ReadyCondition)
	switch {
	case ready != nil && (ready.Reason == "" || !slices.Contains(values, ready.Status)):
		s.set(status, application.ReadyCondition, metav1.ConditionUnknown, "Unreadable", "the status of ConfigMap "+cm.Name+" is none that an agent writes")
	case ready == nil, app.Status.ObservedSpec != app.Spec.Digest():
		status.State = application.StateCreating
		if len(app.Inventory) > 0 {
			status.State = stateReconciling
		}
		s.set(status, application.ReadyCondition, metav1.ConditionFalse, "Pending", "the agent has not carried out ConfigMap "+cm.Name+" yet")
	default:
		s.set(status, application.ReadyCondition, ready.Status, ready.Reason, ready.Message)
		drifted := meta.FindStatusCondition(app.Status.Conditions, application.DriftedCondition)
		switch {
		case ready.Status != metav1.ConditionTrue:
			status.Message = cut(ready.Message)
		case drifted != nil && drifted.Status == metav1.ConditionTrue:
			status.Message = cut(drifted.Message)
		}
	}
}

// setPeer copies the peer from the peer file, or says why there is none.
func (s *shared) setPeer(status *Status, peers, file *corev1.ConfigMap) {
	why := s.withoutFile(peers, file)
	switch {
	case why != "":
		s.set(status, peerFileCondition, metav1.ConditionFalse, "NotFound", why)
	case file.Data[peerFile] == "":
		s.set(status, peerFileCondition, metav1.ConditionTrue, "NoPeer", "no Pod with label habitat=true runs in the namespace")
	default:
		status.Peer = file.Data[peerFile]
		s.set(status, peerFileCondition, metav1.ConditionTrue, "PeerChosen", "a Pod that runs is in the file")
	}
}
