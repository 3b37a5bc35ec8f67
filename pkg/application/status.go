package application

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// State is the state of an Application in the words of the reference.
type State string

// The states that are written. Of a running Application the worst of its
// workloads counts, in this order: FAILED, DEGRADED, RESTARTING, RUNNING; it is
// COMPLETED if all of them are.
const (
	StateCreating   State = "CREATING"
	StateRunning    State = "RUNNING"
	StateRestarting State = "RESTARTING"
	StateDegraded   State = "DEGRADED"
	StateCompleted  State = "COMPLETED"
	StateFailed     State = "FAILED"
	StateDeleting   State = "DELETING"
	// StateMigrating: on its way to another cluster.
	StateMigrating State = "MIGRATING"
	// StateTranslating: what is behind a URL was not fetched yet.
	StateTranslating State = "TRANSLATING"
	// StateWaiting: the Application is asked to shut down, StateReady: it has
	// confirmed that.
	StateWaiting State = "WAITING_FOR_CLEANING"
	StateReady   State = "READY_FOR_ACTION"
)

// The conditions. All of them are there once an agent has seen the Application.
const (
	// ReadyCondition: all objects are as the Application says, and healthy.
	ReadyCondition = "Ready"
	// ReconciledCondition: all objects exist, and their observed fields are as
	// the Application says.
	ReconciledCondition = "Reconciled"
	// DriftedCondition: an observed field differs, and is not reverted now.
	DriftedCondition = "Drifted"
	// ContendedCondition: somebody changes an observed field again and again.
	ContendedCondition = "Contended"
	// ConflictCondition: an object exists that belongs to somebody else.
	ConflictCondition = "Conflict"
	// StalledCondition: nothing more is tried until somebody changes something.
	StalledCondition = "Stalled"
	// MigratingCondition is there while the objects are brought to another cluster,
	// and until no other one has any.
	MigratingCondition = "Migrating"
	// TooLargeCondition is there while the status does not fit into the ConfigMap
	// and is not complete.
	TooLargeCondition = "TooLarge"
)

// Status is the document "status".
type Status struct {
	// Cluster is the cluster of which status and documents speak; empty: local.
	Cluster string `json:"cluster,omitempty"`
	// Target identifies it whatever its name, while the Application is moved: the UID
	// of its namespace kube-system, and after a slash the namespace of the objects where
	// that is not the Application's.
	Target types.UID `json:"target,omitempty"`
	// Awaiting is the cluster whose agent could carry the Application out, and waits for
	// it to shut down where it was.
	Awaiting string `json:"awaiting,omitempty"`
	// ObservedSpec is the digest of the spec that the status speaks of.
	ObservedSpec string             `json:"observedSpec,omitempty"`
	State        State              `json:"state,omitempty"`
	Conditions   []metav1.Condition `json:"conditions,omitempty"`
	// Objects are what there is to tell of single objects, in the manifest's order.
	Objects []ObjectStatus `json:"objects,omitempty"`
	// Services are the addresses of the Services, by name: "10.0.0.1:80", or
	// "<pending>" for each part that is not known yet.
	Services        map[string]string `json:"services,omitempty"`
	ContainerHealth *ContainerHealth  `json:"containerHealth,omitempty"`
	// Drifts are the last ones, the newest first.
	Drifts []Drift `json:"drifts,omitempty"`
}

// ClusterName is the cluster of which the status speaks.
func (s Status) ClusterName() string { return cmp.Or(s.Cluster, LocalCluster) }

// On gives the status as one that speaks of a cluster.
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

// ObjectStatus is what there is to tell of one object.
type ObjectStatus struct {
	manifest.ID `json:",inline"`

	// Health is a status of kstatus: Current, InProgress, Failed, Terminating,
	// NotFound, Unknown.
	Health string `json:"health,omitempty"`
	// Reason and Message tell of a problem: "Conflict", "Held", "Invalid".
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Fields are the paths that differ and are not reverted now, or are written
	// otherwise by the API server.
	Fields []string `json:"fields,omitempty"`
	// Hold is set while somebody holds the object.
	Hold *Hold `json:"hold,omitempty"`
}

// Hold is how an agent sees a hold on one object.
type Hold struct {
	// Until is when it ends, at the latest as long after Since as the agent allows.
	Until metav1.Time `json:"until"`
	// Asked is the annotation as it was seen first, or renewed once.
	Asked string      `json:"asked"`
	Since metav1.Time `json:"since"`
	// Renewed tells that the one renewal was used.
	Renewed bool `json:"renewed,omitempty"`
}

// Drift is one drift of one object, and what became of it.
type Drift struct {
	Object manifest.ID    `json:"object"`
	Fields []DriftedField `json:"fields,omitempty"`
	// Manager, Subresource, Operation and Changed are those of managedFields: a
	// hint, empty where there is none.
	Manager     string       `json:"manager,omitempty"`
	Subresource string       `json:"subresource,omitempty"`
	Operation   string       `json:"operation,omitempty"`
	Changed     *metav1.Time `json:"changed,omitempty"`
	Seen        metav1.Time  `json:"seen"`
	// Repaired is what was done: Reverted, Recreated, or nothing yet.
	Repaired string `json:"repaired,omitempty"`
	// After is how long it took from when the drift was seen.
	After *metav1.Duration `json:"after,omitempty"`
	// Count is how often the same fields were changed by the same manager.
	Count int `json:"count,omitempty"`
}

// DriftedField is a field that drifted. Values are there where they are short
// and hold no secret, digests otherwise.
type DriftedField struct {
	Path string `json:"path"`
	Want any    `json:"want,omitempty"`
	Have any    `json:"have,omitempty"`
}

// NoteBytes is the length to which texts for Events are cut: the API server accepts
// 1,024 bytes.
const NoteBytes = 1000

// Cut shortens a text that is longer than most bytes, and marks it with dots.
func Cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most] + "..."
}

// MaxDrifts bounds the history.
const MaxDrifts = 10

// Object gives what there is to tell of an object; nothing is the zero value.
func (s Status) Object(id manifest.ID) (object ObjectStatus, ok bool) {
	at := slices.IndexFunc(s.Objects, func(object ObjectStatus) bool { return object.ID == id })
	if at < 0 {
		return ObjectStatus{}, false
	}
	return s.Objects[at], true
}

// Remember puts a drift before the others. One that comes back by the same hand is
// counted: a fight must not push everything else out. One that was left as it is until
// now, and is repaired at last, is the same drift and not another.
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
	if len(s.Drifts) > MaxDrifts {
		s.Drifts = s.Drifts[:MaxDrifts]
	}
}

// after gives a drift that follows a former one like it.
func (s *Status) after(former, drift Drift) Drift {
	if drift.Repaired == "" || former.Repaired != "" || !s.isLeft(drift.Object) {
		drift.Count += former.Count
		return drift
	}
	drift.Count = former.Count
	return drift.since(former.Seen)
}

// closeLeft has other drifts that were left as they are until now, repaired along with
// one that has all their fields: somebody has changed more of the object meanwhile.
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

// isLeft tells if something of an object was left as it is when the status was written.
func (s *Status) isLeft(id manifest.ID) bool {
	object, _ := s.Object(id)
	return object.Reason != ""
}

// tooLarge says that not all is there. The time is that of another condition:
// nothing here has a clock.
func (s Status) tooLarge() Status {
	tooLarge := metav1.Condition{
		Type: TooLargeCondition, Status: metav1.ConditionTrue, Reason: "NoRoom",
		Message: "the ConfigMap has no room for the whole status: split the Application, or keep other data elsewhere",
	}
	if len(s.Conditions) > 0 {
		tooLarge.LastTransitionTime = s.Conditions[0].LastTransitionTime
	}
	others := slices.DeleteFunc(slices.Clone(s.Conditions), func(c metav1.Condition) bool { return c.Type == TooLargeCondition })
	s.Conditions = append(others, tooLarge)
	return s
}

// since gives the drift as one that was seen at an earlier time, and took the longer for it.
func (d Drift) since(seen metav1.Time) Drift {
	if !seen.Before(&d.Seen) {
		return d
	}
	after := d.Seen.Sub(seen.Time)
	if d.After != nil {
		after += d.After.Duration
	}
	d.Seen, d.After = seen, &metav1.Duration{Duration: after}
	return d
}

// hasFieldsOf tells if all fields of another drift are among those of this one.
func (d Drift) hasFieldsOf(other Drift) bool {
	return len(other.Fields) > 0 && !slices.ContainsFunc(other.Fields, func(field DriftedField) bool {
		return !slices.ContainsFunc(d.Fields, func(own DriftedField) bool { return own.Path == field.Path })
	})
}

// SameAs tells if two drifts are of the same fields, by the same hand.
func (d Drift) SameAs(other Drift) bool {
	return d.Object == other.Object && d.Manager == other.Manager && d.Subresource == other.Subresource &&
		slices.EqualFunc(d.Fields, other.Fields, func(a, b DriftedField) bool { return a.Path == b.Path })
}
