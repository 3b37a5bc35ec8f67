package habitat

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// Status is what people find in the status of a Habitat.
type Status struct {
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// State is that of the Application, or FAILED where there is no way on; Message
	// says why it is not well.
	State   application.State `json:"state,omitempty"`
	Message string            `json:"message,omitempty"`
	// Ready counts Pods: running/desired.
	Ready string `json:"ready,omitempty"`
	// Application is the ConfigMap that carries the Habitat out.
	Application string `json:"application,omitempty"`
	// Peer is the address in the peer file.
	Peer        string             `json:"peer,omitempty"`
	Conditions  []metav1.Condition `json:"conditions,omitempty"`
	Overwritten *Overwritten       `json:"overwritten,omitempty"`
}

// Overwritten is the last edit of a sub-resource that was set back.
type Overwritten struct {
	Time   metav1.Time `json:"time"`
	Object string      `json:"object"`
	Fields []string    `json:"fields,omitempty"`
	By     string      `json:"by,omitempty"`
	// Count is how often the same was done by the same hand.
	Count int `json:"count,omitempty"`
}

// The conditions of a Habitat.
const (
	// acceptedCondition: the Habitat is carried out as it is now.
	acceptedCondition = "Accepted"
	// peerFileCondition: Pods of the namespace find each other.
	peerFileCondition = "PeerFile"
)

// The reasons of acceptedCondition, which are those of Events, too.
const (
	reasonAccepted         = "Accepted"
	reasonValidationFailed = "ValidationFailed"
	reasonUnknownVersion   = "UnknownVersion"
	reasonSecretMissing    = "SecretMissing"
	reasonNameTaken        = "NameTaken"
	reasonGoing            = "Going"
	reasonImmutable        = "Immutable"
	reasonRefused          = "Refused"
)

// statusOf reads the status of a Habitat. What cannot be read is written anew.
func statusOf(live *unstructured.Unstructured) Status {
	fields, _ := live.Object["status"].(map[string]any)
	var status Status
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &status); err != nil {
		return Status{}
	}
	return status
}

// tell makes the status that a Habitat is to have from that of before.
func (s *shared) tell(former Status, live *unstructured.Unstructured, v verdict, app, peers, file *corev1.ConfigMap) Status {
	status := Status{
		ObservedGeneration: live.GetGeneration(), Conditions: slices.Clone(former.Conditions), Overwritten: former.Overwritten,
	}
	s.set(&status, live, acceptedCondition, v.status(), v.reason, v.message)
	s.tellApplication(&status, live, app)
	s.tellPeers(&status, live, peers, file)
	if v.reason != reasonAccepted {
		status.State, status.Message = application.StateFailed, cut(v.message)
		if v.reason == reasonGoing {
			status.State = application.StateDeleting
		}
	}
	return status
}

func (s *shared) set(status *Status, live *unstructured.Unstructured, name string, value metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: name, Status: value, Reason: reason, Message: cut(message), ObservedGeneration: live.GetGeneration(),
		LastTransitionTime: metav1.NewTime(s.now()),
	})
}

// tellApplication takes over what the agent says of the Application, if it speaks of
// what the Application is now.
func (s *shared) tellApplication(status *Status, live *unstructured.Unstructured, cm *corev1.ConfigMap) {
	if cm == nil {
		s.set(status, live, application.ReadyCondition, metav1.ConditionFalse, "NotAccepted", "there is no Application")
		return
	}
	status.Application = cm.Name
	app, err := application.ReadFor(cm, s.cluster)
	if err != nil {
		s.set(status, live, application.ReadyCondition, metav1.ConditionUnknown, "Unreadable", "the status of ConfigMap "+cm.Name+" cannot be read")
		return
	}
	status.State = application.State(cutName(string(app.Status.State)))
	if health := app.Status.ContainerHealth; health != nil {
		status.Ready = fmt.Sprintf("%d/%d", health.RunningPods, health.DesiredPods)
	}
	ready := meta.FindStatusCondition(app.Status.Conditions, application.ReadyCondition)
	if ready != nil && (ready.Reason == "" || !isStatus(ready.Status)) {
		s.set(status, live, application.ReadyCondition, metav1.ConditionUnknown, "Unreadable", "the status of ConfigMap "+cm.Name+" is none that an agent writes")
		return
	}
	switch {
	case ready == nil, app.Status.ObservedSpec != app.Spec.Digest():
		status.State = application.StateCreating
		if len(app.Inventory) > 0 {
			status.State = stateReconciling
		}
		s.set(status, live, application.ReadyCondition, metav1.ConditionFalse, "Pending", "the agent has not carried out ConfigMap "+cm.Name+" yet")
	default:
		s.set(status, live, application.ReadyCondition, ready.Status, ready.Reason, ready.Message)
		status.Message = unwell(app.Status.Conditions)
	}
}

// unwell says why an Application is not as it should be: it is not ready, or what
// differs is left so.
func unwell(conditions []metav1.Condition) string {
	if ready := meta.FindStatusCondition(conditions, application.ReadyCondition); ready.Status != metav1.ConditionTrue {
		return cut(ready.Message)
	}
	if drifted := meta.FindStatusCondition(conditions, application.DriftedCondition); drifted != nil && drifted.Status == metav1.ConditionTrue {
		return cut(drifted.Message)
	}
	return ""
}

// stateReconciling is in the words of the reference what an Application is in
// between: agents do not write it, because it passes.
const stateReconciling application.State = "RECONCILING"

// tellPeers tells what the peer file has, or why there is none.
func (s *shared) tellPeers(status *Status, live *unstructured.Unstructured, peers, file *corev1.ConfigMap) {
	why := s.withoutFile(peers, file)
	if why != "" {
		s.set(status, live, peerFileCondition, metav1.ConditionFalse, "Missing", why)
		return
	}
	status.Peer = file.Data[peerFile]
	if status.Peer == "" {
		s.set(status, live, peerFileCondition, metav1.ConditionTrue, "NoPeer", "no Pod with label habitat=true runs in the namespace")
		return
	}
	s.set(status, live, peerFileCondition, metav1.ConditionTrue, "Chosen", "a Pod that runs is in the file")
}

func isStatus(value metav1.ConditionStatus) bool {
	return value == metav1.ConditionTrue || value == metav1.ConditionFalse || value == metav1.ConditionUnknown
}

// cut turns a message into one line that fits into conditions and Events.
func cut(text string) string {
	line := strings.Join(strings.Fields(text), " ")
	return strings.ToValidUTF8(application.Cut(line, application.NoteBytes), "")
}
