package health

import (
	"iter"
	"math"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kindOf returns the kind with its group, in whatever version: "Pod", "Deployment.apps".
func kindOf(live map[string]any) string {
	return schema.FromAPIVersionAndKind(at[string](live, "apiVersion"), at[string](live, "kind")).GroupKind().String()
}

// podsOf counts the Pods of a workload. A CronJob is none: its Jobs are, and they do not belong to the
// Application.
func podsOf(kind string, live map[string]any) (isWorkload bool, state State, pods Pods) {
	switch kind {
	case "Deployment.apps", "StatefulSet.apps", "ReplicaSet.apps", "ReplicationController":
		pods = Pods{Desired: count(1, live, "spec", "replicas"), Running: count(0, live, "status", "readyReplicas")}
		return true, complete(pods), pods
	case "DaemonSet.apps":
		pods = Pods{Desired: count(0, live, "status", "desiredNumberScheduled"), Running: count(0, live, "status", "numberReady")}
		return true, complete(pods), pods
	case "Job.batch":
		pods = Pods{
			Desired:   count(1, live, "spec", "completions"),
			Running:   count(0, live, "status", "active"),
			Completed: count(0, live, "status", "succeeded"),
			Failed:    count(0, live, "status", "failed"),
		}
		return true, stateOfJob(live), pods
	case "Pod":
		state = stateOfPod(live)
		return true, state, onePod(state)
	}
	return false, StateRunning, Pods{}
}

func complete(pods Pods) State {
	if pods.Running != pods.Desired {
		return StateDegraded
	}
	return StateRunning
}

// stateOfJob returns the state of a Job. Its failed Pods do not make it fail: it tries again.
func stateOfJob(live map[string]any) State {
	switch {
	case holds(live, "Complete"):
		return StateCompleted
	case holds(live, "Failed"):
		return StateFailed
	}
	return StateRunning
}

func stateOfPod(live map[string]any) State {
	phase := at[string](live, "status", "phase")
	switch {
	case phase == "Succeeded":
		return StateCompleted
	case phase == "Failed":
		return StateFailed
	case phase == "Running" && holds(live, "Ready"):
		return StateRunning
	}
	state := StateRunning
	for _, statuses := range []string{"initContainerStatuses", "containerStatuses"} {
		for container := range objects(live, "status", statuses) {
			state = worse(state, stateOfContainer(container))
		}
	}
	if state == StateRunning { // no container says why it is not ready
		return StateDegraded
	}
	return state
}

func stateOfContainer(container map[string]any) State {
	if at[bool](container, "ready") {
		return StateRunning
	}
	switch at[string](container, "state", "waiting", "reason") {
	case "CrashLoopBackOff":
		return StateRestarting
	case "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName",
		"CreateContainerConfigError", "CreateContainerError":
		return StateDegraded
	}
	if count(0, container, "restartCount") > 0 { // restarted, and not ready since
		return StateRestarting
	}
	return StateRunning
}

// onePod counts a Pod alone.
func onePod(state State) Pods {
	pods := Pods{Desired: 1}
	switch state {
	case StateRunning:
		pods.Running = 1
	case StateCompleted:
		pods.Completed = 1
	case StateFailed:
		pods.Failed = 1
	}
	return pods
}

func isUnschedulable(pod map[string]any) bool {
	if at[string](pod, "status", "phase") != "Pending" {
		return false
	}
	for condition := range objects(pod, "status", "conditions") {
		if at[string](condition, "type") == "PodScheduled" {
			return at[string](condition, "status") == "False" && at[string](condition, "reason") == "Unschedulable"
		}
	}
	return false
}

// holds reports whether the object has a condition of that type that is true.
func holds(live map[string]any, conditionType string) bool {
	for condition := range objects(live, "status", "conditions") {
		if at[string](condition, "type") == conditionType && at[string](condition, "status") == "True" {
			return true
		}
	}
	return false
}

// at returns the value at the path, the zero value if there is none of this type.
func at[T any](object map[string]any, path ...string) T {
	last := len(path) - 1
	for _, field := range path[:last] {
		object, _ = object[field].(map[string]any)
	}
	value, _ := object[path[last]].(T)
	return value
}

// objects returns the objects in a list, without other elements.
func objects(object map[string]any, path ...string) iter.Seq[map[string]any] {
	return func(yield func(map[string]any) bool) {
		for _, item := range at[[]any](object, path...) {
			if item, ok := item.(map[string]any); ok && !yield(item) {
				return
			}
		}
	}
}

// count returns a number of Pods, in the bounds of the API, from 0 to an int32, so that sums do not overflow.
func count(missing int64, object map[string]any, path ...string) int64 {
	number, ok := at[any](object, path...).(int64)
	if !ok {
		return missing
	}
	return min(max(number, 0), math.MaxInt32)
}
