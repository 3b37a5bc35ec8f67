package application

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// State is the state of an Application in the words of Krake.
type State string

// The states. A running Application has the worst state of its workloads: FAILED, DEGRADED,
// RESTARTING, RUNNING, and COMPLETED if all of them are.
const (
	StateCreating    State = "CREATING"
	StateRunning     State = "RUNNING"
	StateRestarting  State = "RESTARTING"
	StateDegraded    State = "DEGRADED"
	StateCompleted   State = "COMPLETED"
	StateFailed      State = "FAILED"
	StateDeleting    State = "DELETING"
	StateMigrating   State = "MIGRATING"
	StateTranslating State = "TRANSLATING"
	StateWaiting     State = "WAITING_FOR_CLEANING"
	StateReady       State = "READY_FOR_ACTION"
)

// States returns all states that an agent writes.
func States() []State {
	return []State{
		StateCreating, StateTranslating, StateRunning, StateRestarting, StateDegraded, StateCompleted, StateFailed,
		StateMigrating, StateWaiting, StateReady, StateDeleting,
	}
}

// The conditions. An Application has all but the last two once an agent has seen it.
const (
	// ReadyCondition: all objects match the Application, and are healthy.
	ReadyCondition = "Ready"
	// ReconciledCondition: all objects exist, and their observed fields match the Application.
	ReconciledCondition = "Reconciled"
	// DriftedCondition: an observed field differs, and the agent does not revert it now.
	DriftedCondition = "Drifted"
	// ContendedCondition: another manager changes an observed field again and again.
	ContendedCondition = "Contended"
	// ConflictedCondition: an object exists that has another owner.
	ConflictedCondition = "Conflicted"
	// StalledCondition: the agent stops trying until a user or another program changes something.
	StalledCondition = "Stalled"
	// MigratingCondition exists during a move, until no other cluster has objects.
	MigratingCondition = "Migrating"
	// StatusTruncatedCondition exists while the status does not fit into the ConfigMap and is not complete.
	StatusTruncatedCondition = "StatusTruncated"
)

// Status is the document "status".
type Status struct {
	// Cluster is the cluster that status and documents are about, empty for local.
	Cluster string `json:"cluster,omitempty"`
	// Target identifies the cluster under any name during a move: the UID of its namespace
	// kube-system, and after a slash the namespace of the objects if that is not the Application's.
	Target types.UID `json:"target,omitempty"`
	// Awaiting is the cluster whose agent waits for the Application to shut down elsewhere.
	Awaiting string `json:"awaiting,omitempty"`
	// ObservedSpec is the digest of the spec that the status is about.
	ObservedSpec string             `json:"observedSpec,omitempty"`
	State        State              `json:"state,omitempty"`
	Conditions   []metav1.Condition `json:"conditions,omitempty"`
	// Objects has a record of each object that needs one, in the manifest's order.
	Objects []ObjectStatus `json:"objects,omitempty"`
	// Services has the addresses of the Services by name: "10.0.0.1:80", with "<pending>" for a part
	// that is not known yet.
	Services        map[string]string `json:"services,omitempty"`
	ContainerHealth *ContainerHealth  `json:"containerHealth,omitempty"`
	// Drifts is the history, the newest first.
	Drifts []Drift `json:"drifts,omitempty"`
}

// ClusterName returns the cluster that the status is about.
func (s Status) ClusterName() string { return cmp.Or(s.Cluster, LocalCluster) }

// On returns the status as one that is about a cluster.
func (s Status) On(cluster string) Status {
	s.Cluster = cluster
	if cluster == LocalCluster {
		s.Cluster = ""
	}
	return s
}

// ContainerHealth counts the Pods of all workloads.
type ContainerHealth struct {
	DesiredPods   int64 `json:"desired_pods"`
	RunningPods   int64 `json:"running_pods"`
	CompletedPods int64 `json:"completed_pods"`
	FailedPods    int64 `json:"failed_pods"`
}

// ObjectStatus is the status of one object.
type ObjectStatus struct {
	manifest.ID `json:",inline"`

	// Health is a status of kstatus: Current, InProgress, Failed, Terminating, NotFound, Unknown.
	Health string `json:"health,omitempty"`
	// Reason and Message describe a problem, such as "AlreadyExists", "Held" or "Invalid".
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Fields are the paths that differ and are not reverted now, or that the API server stores in
	// another form.
	Fields []string `json:"fields,omitempty"`
	// Hold is set while a user holds the object.
	Hold *Hold `json:"hold,omitempty"`
	// Ended is set when the object has finished, and its cluster deletes it then.
	Ended *Ended `json:"ended,omitempty"`
}

// Ended is the end of an object that its cluster deletes when it has finished, such as a Job with a TTL.
type Ended struct {
	// Manifest is the digest of the manifest that the object was made of.
	Manifest string `json:"manifest"`
	// State is COMPLETED or FAILED.
	State State `json:"state"`
}

// Hold is a hold on one object, as the agent applies it.
type Hold struct {
	// Until is when it ends. The agent bounds the time from Since.
	Until metav1.Time `json:"until"`
	// Asked is the annotation's value when it was first seen, or last renewed.
	Asked string      `json:"asked"`
	Since metav1.Time `json:"since"`
	// Renewed reports that the one renewal was used.
	Renewed bool `json:"renewed,omitempty"`
}

// NoteBytes is the length to which texts for Events are cut: the API server accepts 1,024 bytes.
const NoteBytes = 1000

// Cut shortens a text that is longer than most bytes, and marks it with dots.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most] + "..."
}

// Object returns the status of an object, the zero value if there is none.
func (s Status) Object(id manifest.ID) (object ObjectStatus, ok bool) {
	at := slices.IndexFunc(s.Objects, func(object ObjectStatus) bool { return object.ID == id })
	if at < 0 {
		return ObjectStatus{}, false
	}
	return s.Objects[at], true
}

// Remember puts a drift before the others. A drift of the same fields by the same manager increases
// a count, because contention must not displace all others. An unrepaired drift that is repaired at
// last is the same drift.
func (s *Status) Remember(drift Drift) {
	drift.Count = 1
	if drift.Repaired != "" {
		s.closeLeft(drift)
	}
	for i, former := range s.Drifts {
		if former.SameAs(drift) {
			drift = s.after(former, drift)
			s.Drifts = slices.Delete(slices.Clone(s.Drifts), i, i+1)
			break
		}
	}
	s.Drifts = append([]Drift{drift}, s.Drifts...)
	s.Drifts = s.Drifts[:min(len(s.Drifts), MaxDrifts)]
}

// after returns a drift that follows a similar former one.
func (s *Status) after(former, drift Drift) Drift {
	if drift.Repaired == "" || former.Repaired != "" || !s.isLeft(drift.Object) {
		drift.Count += former.Count
		return drift
	}
	drift.Count = former.Count
	return drift.since(former.Seen)
}

// closeLeft records other unrepaired drifts as repaired by a repair of all their fields. More
// fields of the object changed in the meantime.
func (s *Status) closeLeft(by Drift) {
	if !s.isLeft(by.Object) {
		return
	}
	s.Drifts = slices.Clone(s.Drifts)
	for i, former := range s.Drifts {
		if former.Object == by.Object && former.Repaired == "" && !former.SameAs(by) && by.hasFieldsOf(former) {
			s.Drifts[i].Repaired, s.Drifts[i].After = by.Repaired, by.since(former.Seen).After
		}
	}
}

// isLeft reports whether the last pass left a difference of an object unrepaired.
func (s *Status) isLeft(id manifest.ID) bool {
	object, _ := s.Object(id)
	return object.Reason != ""
}
