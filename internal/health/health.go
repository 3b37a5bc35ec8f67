package health

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Health is the health of a live object.
type Health struct {
	Status Status
	// Message says why, in at most [MaxMessage] bytes: numbers, and names of kinds, containers, reasons and finalizers.
	Message string
	// Workload reports that the object runs Pods, which State and Pods then describe.
	Workload bool
	State    State
	Pods     Pods
	// Address is that of a Service, see [Of].
	Address string
	// End is the state in which the object has finished, if its cluster deletes it then: COMPLETED or FAILED for a
	// Job with a TTL, "" otherwise.
	End State
}

// Ended returns the health of an object that has finished in this state, and was deleted then.
func Ended(state State) Health {
	h := Health{Status: StatusCurrent, Message: "it has finished, and its TTL deletes it", Workload: true, State: state, End: state}
	if state == StateFailed {
		h.Status, h.Message = StatusFailed, "it has failed, and its TTL deletes it: change its manifest to run it again"
	}
	return h
}

// MaxMessage bounds [Health].Message, which is stored for each object.
const MaxMessage = 256

// Of returns the health of a live object. It changes nothing in the object and keeps no part of it.
//
// The address of a Service is host:port, or host:port,port,... with at most 16 ports and "..." for the
// rest. An IPv6 address is in brackets, and "<pending>" stands for a part that is not known yet. The
// host is, by type,
//
//	LoadBalancer   the first address or name of the load balancer
//	NodePort       "<node>", for any node, and the port is the node's
//	ClusterIP      the address within the cluster; a headless Service has no address
//	ExternalName   the name, alone if there are no ports
func Of(live map[string]any) Health {
	var h Health
	h.Status, h.Message = statusOf(live)
	kind := kindOf(live)
	h.Workload, h.State, h.Pods = podsOf(kind, live)
	if ttl, _, _ := unstructured.NestedFieldNoCopy(live, "spec", "ttlSecondsAfterFinished"); ttl != nil && kind == "Job.batch" && h.State != StateRunning {
		h.End = h.State
	}
	if kind == "Service" {
		h.Address = addressOf(live)
	}
	h.correct(kind, live)
	h.Message = shorten(h.Message)
	return h
}

// correct makes status and state agree where one of them knows better.
func (h *Health) correct(kind string, live map[string]any) {
	switch {
	case h.Status == StatusTerminating:
		h.correctDeletion(live)
	case h.Status == StatusUnknown:
	case kind == "Job.batch" && at[bool](live, "spec", "suspend") && h.State == StateRunning:
		h.Status, h.Message = StatusCurrent, "Job is suspended"
	case kind == "Pod" && isUnschedulable(live):
		// kstatus looks at the clock, but no event comes when its 15 s are over.
		h.Status, h.Message = StatusInProgress, "Pod could not be scheduled"
	case h.Status == StatusCurrent && h.State == StateFailed:
		h.Status = StatusFailed
	case h.Status == StatusCurrent && h.State == StateDegraded:
		h.Status, h.Message = StatusInProgress, fmt.Sprintf("Ready: %d/%d", h.Pods.Running, h.Pods.Desired)
	}
	if kind != "Pod" || h.Status == StatusTerminating { // the containers of a Pod say more
		h.State = worse(h.State, h.Status.state())
	}
}

// correctDeletion corrects the health of an object that is being deleted.
func (h *Health) correctDeletion(live map[string]any) {
	if h.End != "" { // by its TTL
		ended := Ended(h.End)
		h.Status, h.Message = ended.Status, ended.Message
	} else if finalizers := finalizersOf(live); finalizers != "" {
		h.Message = "its deletion waits for its finalizers " + finalizers
	}
}

// finalizersOf returns the finalizers of an object: "a, b".
func finalizersOf(live map[string]any) string {
	return strings.Join((&unstructured.Unstructured{Object: live}).GetFinalizers(), ", ")
}

// shorten cuts a text between two letters.
func shorten(message string) string {
	if len(message) <= MaxMessage {
		return message
	}
	const dots = "..."
	return strings.ToValidUTF8(message[:MaxMessage-len(dots)], "") + dots
}

// RollUp combines the health of many objects: the worst state wins, and all Pods are counted. Objects
// that run nothing only count if they are not well. A Service beside a completed Job must not keep the
// Application running.
func RollUp(all []Health) (state State, pods Pods, hasWorkloads bool) {
	state = StateCompleted
	for _, h := range all {
		if h.Workload || h.State != StateRunning {
			state = worse(state, h.State)
		}
		hasWorkloads = hasWorkloads || h.Workload
		pods.Desired += h.Pods.Desired
		pods.Running += h.Pods.Running
		pods.Completed += h.Pods.Completed
		pods.Failed += h.Pods.Failed
	}
	if !hasWorkloads {
		state = worse(state, StateRunning)
	}
	return state, pods, hasWorkloads
}
