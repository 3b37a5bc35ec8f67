package health

// Health is what a live object tells of itself.
type Health struct {
	Status Status
	// Message says why, in at most [MaxMessage] bytes: numbers, and names of
	// kinds, containers and reasons.
	Message string
	// Workload tells that the object runs Pods. It then is they that State and
	// Pods tell of.
	Workload bool
	State    State
	Pods     Pods
	// Address is where a Service is reached, see [Of].
	Address string
}

// MaxMessage bounds [Health].Message: it is kept for each object.
const MaxMessage = 256

// Status is a status of kstatus.
type Status string

// What an object can be.
const (
	StatusCurrent     Status = "Current"
	StatusInProgress  Status = "InProgress"
	StatusFailed      Status = "Failed"
	StatusTerminating Status = "Terminating"
	StatusUnknown     Status = "Unknown"
)

// State is what an object adds to the state of its Application, in the same words.
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

// Of reads the health of a live object. The object is not changed, and nothing
// of it is kept.
//
// Addresses of Services have the form host:port, or host:port,port,... with at
// most 16 ports and "..." for the rest. An IPv6 address stands in brackets, and
// "<pending>" for a part that is not known yet. The host is, by type,
//
//	LoadBalancer   the first address or name of the load balancer
//	NodePort       "<node>": every node will do, and the port is the node's
//	ClusterIP      the address within the cluster; nothing at all if headless
//	ExternalName   the name; it stands alone if there are no ports
func Of(live map[string]any) Health {
	var h Health
	h.Status, h.Message = statusOf(live)
	kind := kindOf(live)
	h.Workload, h.State, h.Pods = podsOf(kind, live)
	if kind == service {
		h.Address = addressOf(live)
	}
	h.correct(kind, live)
	h.Message = shorten(h.Message)
	return h
}

// RollUp makes one health out of many: the worst state wins, and all Pods are
// counted. Objects that run nothing only count if they are not well, so that
// the Service beside a completed Job does not run on for ever.
func RollUp(all []Health) (state State, pods Pods, hasWorkloads bool) {
	state = StateCompleted
	for _, h := range all {
		if h.Workload || h.State != StateRunning {
			state = worse(state, h.State)
		}
		hasWorkloads = hasWorkloads || h.Workload
		pods = pods.plus(h.Pods)
	}
	if !hasWorkloads {
		state = worse(state, StateRunning)
	}
	return state, pods, hasWorkloads
}

func (p Pods) plus(other Pods) Pods {
	return Pods{
		Desired:   p.Desired + other.Desired,
		Running:   p.Running + other.Running,
		Completed: p.Completed + other.Completed,
		Failed:    p.Failed + other.Failed,
	}
}

func worse(a, b State) State {
	if b.badness() > a.badness() {
		return b
	}
	return a
}

func (s State) badness() int {
	switch s {
	case StateFailed:
		return 4
	case StateDegraded:
		return 3
	case StateRestarting:
		return 2
	case StateRunning:
		return 1
	}
	return 0
}
