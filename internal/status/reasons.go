package status

import (
	"slices"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// The reasons why an object, or an Application as a whole, differs from the spec. [Reasons] has their
// order and meanings.
const (
	Unreadable      = "Unreadable"
	NotAdmitted     = "NotAdmitted"
	Unreachable     = "TargetUnreachable"
	InvalidTosca    = "InvalidToscaManifest" // INVALID_TOSCA_MANIFEST in Krake
	NotFetched      = "FetchFailed"
	Refused         = "Refused"
	NoAccount       = "ServiceAccountNotFound"
	OwnedByAnother  = "OwnedByAnotherApplication"
	AlreadyExists   = "AlreadyExists"
	Invalid         = "Invalid"
	Forbidden       = "Forbidden"
	Terminating     = "NamespaceTerminating"
	KindNotFound    = "KindNotFound"
	NotEstablished  = "DefinitionNotEstablished"
	NoValues        = "ValuesNotFound"
	Waiting         = "DependencyNotReady"
	DeletionBlocked = "DeletionBlocked"
	Error           = "Error"
	Ineffective     = "Ineffective"
	Contended       = "Contended"
	Held            = "Held"
	ObserveMode     = "ObserveMode"
)

// Retry says when the agent tries again after a failure.
type Retry int

// Backoff means that the queue tries again. Slowly means once a minute, because a person or another
// controller must act, and no event reports that. Rarely means after growing pauses, and at once if
// the object, the definition of its kind, or the Application changes.
const (
	Backoff Retry = iota
	Slowly
	Rarely
)

// Reason is an entry of the table of reasons.
type Reason struct {
	Name string
	// Meaning completes the sentence "the condition says:".
	Meaning string
	// Remedy is the user's way out. It is "" if the error already names it, or if the user can do
	// nothing.
	Remedy string
	// Conditions are the conditions that the reason makes true. It makes Reconciled and Ready
	// false.
	Conditions []string
	// Wanted reports that a user requested it, or that it is a step on the way: the Application has not failed.
	Wanted bool
	// CarriedOut reports that an object with this reason matches the spec as far as possible. A
	// later difference is therefore a drift.
	CarriedOut bool
	Retry      Retry
}

const (
	drifted  = application.DriftedCondition
	conflict = application.ConflictedCondition
	stalled  = application.StalledCondition
)

// Reasons returns the table, with the gravest reason first.
func Reasons() []Reason {
	return []Reason{
		{
			Name: Unreadable, Conditions: []string{stalled},
			Meaning: "a document of the agent in the ConfigMap cannot be read: the inventory, or the learned values, are unknown",
		},
		{
			Name: NotAdmitted, Conditions: []string{stalled},
			Meaning: "the webhook has not admitted this content, as its signature would prove: nothing is carried out",
			Remedy:  "write it again while the webhook runs (kubectl annotate configmap NAME note=written-again)",
		},
		{Name: Unreachable, Meaning: "the API server of the cluster does not answer"},
		{Name: InvalidTosca, Conditions: []string{stalled}, Meaning: "template or archive cannot be translated"},
		{Name: NotFetched, Meaning: "the content of the URL could not be fetched; it is tried again"},
		{Name: Refused, Conditions: []string{stalled}, Meaning: "the agent refuses the spec, as the webhook would, or because of the agent's configuration"},
		{Name: NoAccount, Meaning: "the ServiceAccount that has to write the objects does not exist"},
		{
			Name: OwnedByAnother, Conditions: []string{conflict}, Retry: Slowly,
			Meaning: "the object belongs to another Application", Remedy: "leave it out of one of the two",
		},
		{
			Name: AlreadyExists, Conditions: []string{conflict}, Retry: Slowly,
			Meaning: "the object existed before, and belongs to no Application",
			Remedy:  "annotate the Application with " + application.AdoptAnnotation + "=true to adopt it, or choose another name",
		},
		{
			Name: Invalid, Conditions: []string{drifted, stalled}, Retry: Rarely, CarriedOut: true,
			Meaning: "the API server refuses values of the object", Remedy: "correct it in the Application",
		},
		{
			Name: Forbidden, Conditions: []string{stalled},
			Meaning: "the agent, or the ServiceAccount it acts as, lacks a right on the cluster",
			Remedy:  "grant the permission to the agent or to the Application's service account",
		},
		{
			Name: Terminating, Conditions: []string{stalled}, Retry: Slowly,
			Meaning: "the namespace of the objects is being deleted", Remedy: "the agent creates it when the namespace is deleted and exists again",
		},
		{
			Name: KindNotFound, Conditions: []string{stalled}, Retry: Slowly,
			Meaning: "the cluster does not serve the kind", Remedy: "the agent creates it when the cluster serves the kind; or correct apiVersion and kind",
		},
		{
			Name: NoValues, Conditions: []string{stalled}, Retry: Slowly,
			Meaning: "the source of a Secret's values does not exist", Remedy: "create it in the Application's namespace on the cluster, or correct annotation " + application.ValuesFromAnnotation,
		},
		{Name: DeletionBlocked, Conditions: []string{stalled}, Meaning: "a finalizer of another program blocks the deletion of an object"},
		{Name: Error, Meaning: "something else went wrong, and is tried again"},
		{
			Name: NotEstablished, Wanted: true, Retry: Slowly,
			Meaning: "the definition of the object's kind is in the same Application, and the cluster does not serve the kind yet",
		},
		{Name: Waiting, Wanted: true, Meaning: "an Application that " + application.AfterAnnotation + " names is not ready: nothing is created before"},
		{Name: Ineffective, Conditions: []string{drifted}, CarriedOut: true, Meaning: "a repair was accepted and had no lasting effect"},
		{
			Name: Contended, Conditions: []string{drifted}, Wanted: true, CarriedOut: true,
			Meaning: "repairs of the object pause, because another client changes it again and again",
		},
		{Name: Held, Conditions: []string{drifted}, Wanted: true, CarriedOut: true, Meaning: "a user holds the object or the Application"},
		{Name: ObserveMode, Conditions: []string{drifted}, Wanted: true, CarriedOut: true, Meaning: "mode observe: the difference is reported, and not reverted"},
	}
}

// table is a copy of Reasons that never changes.
var table = Reasons()

// Of returns the entry of a reason, and whether the table has it.
func Of(name string) (Reason, bool) {
	if at := gravity(name); at < len(table) {
		return table[at], true
	}
	return Reason{Name: name}, false
}

// gravity is the index of a reason in the table, or the table's length for an unknown one.
func gravity(name string) int {
	if at := slices.IndexFunc(table, func(r Reason) bool { return r.Name == name }); at >= 0 {
		return at
	}
	return len(table)
}

// IsFailure reports whether an Application with this reason has failed. It has not without a
// reason, or with one that a user requested or that is a step on the way.
func IsFailure(name string) bool {
	reason, _ := Of(name)
	return name != "" && !reason.Wanted
}

// WasCarriedOut reports whether an object with this reason, or none, matches the spec as far as
// possible.
func WasCarriedOut(name string) bool {
	reason, _ := Of(name)
	return name == "" || reason.CarriedOut
}
