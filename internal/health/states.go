package health

import "slices"

// Status is a status of kstatus.
type Status string

// The statuses of an object.
const (
	StatusCurrent     Status = "Current"
	StatusInProgress  Status = "InProgress"
	StatusFailed      Status = "Failed"
	StatusTerminating Status = "Terminating"
	StatusUnknown     Status = "Unknown"
)

// State is what an object contributes to the state of its Application, in the same words.
type State string

// The states, the worst first; an Application is completed if all its workloads are.
const (
	StateFailed     State = "FAILED"
	StateDegraded   State = "DEGRADED"
	StateRestarting State = "RESTARTING"
	StateRunning    State = "RUNNING"
	StateCompleted  State = "COMPLETED"
)

// Pods counts the Pods of a workload.
type Pods struct {
	Desired, Running, Completed, Failed int64
}

// gravity has the states from the best to the worst.
var gravity = []State{StateCompleted, StateRunning, StateRestarting, StateDegraded, StateFailed}

func worse(a, b State) State {
	return gravity[max(slices.Index(gravity, a), slices.Index(gravity, b))]
}

// state returns the state that goes with a status. Of an unreadable object nothing bad is known.
func (s Status) state() State {
	switch s {
	case StatusFailed:
		return StateFailed
	case StatusInProgress, StatusTerminating:
		return StateDegraded
	}
	return StateCompleted
}
