package status

import (
	"slices"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// The reasons why an object, or an Application as a whole, differs from the spec. [Reasons] has their
// order and meanings.
const (
	Unreadable      = "Unreadable"
	Unreachable     = "TargetUnreachable"
	InvalidTosca    = "INVALID_TOSCA_MANIFEST" // the reference's word
	NotFetched      = "SourceNotFetched"
	Refused         = "Refused"
	NoAccount       = "ServiceAccountNotFound"
	OwnedByAnother  = "OwnedByAnother"
	AlreadyExists   = "AlreadyExists"
	Invalid         = "Invalid"
	Forbidden       = "Forbidden"
	Terminating     = "NamespaceTerminating"
	KindNotFound    = "KindNotFound"
	DeletionBlocked = "DeletionBlocked"
	Error           = "Error"
	Ineffective     = "Ineffective"
	Contended       = "Contended"
	Held            = "Held"
	Observed        = "Observed"
)

// Retry says when something is tried again after a failure.
type Retry int

// Backoff has the queue try again. Slowly tries once in a minute, because a person or another controller
// has to act without an event. Never waits for another spec or another object.
const (
	Backoff Retry = iota
	Slowly
	Never
)

// Reason is what is known of a reason.
type Reason struct {
	Name string
	// Meaning completes the sentence "the condition says:".
	Meaning string
	// Remedy is what the user can do about the error, "" if the error says it or nothing helps.
	Remedy string
	// Conditions are those that the reason makes true, beside Reconciled and Ready, which it makes false.
	Conditions []string
	// Wanted reports that a user asked for it: the Application has not failed.
	Wanted bool
	// CarriedOut reports that an object with this reason was brought to the spec as far as possible, so
	// that a later difference is a drift.
	CarriedOut bool
	Retry      Retry
}

const (
	drifted  = application.DriftedCondition
	conflict = application.ConflictCondition
	stalled  = application.StalledCondition
)

// Reasons returns the table, the gravest first.
func Reasons() []Reason {
	return []Reason{
		{
			Name: Unreadable, Conditions: []string{stalled},
			Meaning: "a document of the agent in the ConfigMap cannot be read: what is held, or was learned, is not known",
		},
		{Name: Unreachable, Meaning: "the API server of the cluster does not answer"},
		{Name: InvalidTosca, Conditions: []string{stalled}, Meaning: "template or archive cannot be translated"},
		{Name: NotFetched, Meaning: "what is behind the URL could not be fetched; it is tried again"},
		{Name: Refused, Conditions: []string{stalled}, Meaning: "the agent refuses the spec, as the webhook would, or for where it runs"},
		{Name: NoAccount, Meaning: "the ServiceAccount that is to write the objects is not there"},
		{
			Name: OwnedByAnother, Conditions: []string{conflict}, Retry: Slowly,
			Meaning: "the object belongs to another Application", Remedy: "leave it out of one of the two",
		},
		{
			Name: AlreadyExists, Conditions: []string{conflict}, Retry: Slowly,
			Meaning: "the object was there before, and belongs to no Application",
			Remedy:  "annotate the Application with " + application.AdoptAnnotation + "=true to take it over, or choose another name",
		},
		{
			Name: Invalid, Conditions: []string{drifted, stalled}, Retry: Never, CarriedOut: true,
			Meaning: "the API server refuses values of the object", Remedy: "correct it in the Application",
		},
		{
			Name: Forbidden, Meaning: "the agent, or the ServiceAccount it acts as, lacks a right on the cluster",
			Remedy: "bind whoever writes it, the agent or the Application's service account, to a role with that right",
		},
		{
			Name: Terminating, Conditions: []string{stalled}, Retry: Slowly,
			Meaning: "the namespace of the objects is being deleted", Remedy: "it is created when the namespace is gone and there again",
		},
		{
			Name: KindNotFound, Conditions: []string{stalled}, Retry: Slowly,
			Meaning: "the cluster does not serve the kind", Remedy: "it is created when the cluster has the kind; or correct apiVersion and kind",
		},
		{Name: DeletionBlocked, Conditions: []string{stalled}, Meaning: "an object that is to go is kept by somebody's finalizer"},
		{Name: Error, Meaning: "something else went wrong, and is tried again"},
		{Name: Ineffective, Conditions: []string{drifted}, CarriedOut: true, Meaning: "a repair was accepted and had no lasting effect"},
		{
			Name: Contended, Conditions: []string{drifted}, Wanted: true, CarriedOut: true,
			Meaning: "the object is left alone for a while, because somebody changes it again and again",
		},
		{Name: Held, Conditions: []string{drifted}, Wanted: true, CarriedOut: true, Meaning: "somebody holds the object or the Application"},
		{Name: Observed, Conditions: []string{drifted}, Wanted: true, CarriedOut: true, Meaning: "mode observe: the difference is reported, and left"},
	}
}

// table is Reasons, which nothing changes.
var table = Reasons()

// Of returns what is known of a reason, and whether it is in the table.
func Of(name string) (Reason, bool) {
	if at := gravity(name); at < len(table) {
		return table[at], true
	}
	return Reason{Name: name}, false
}

// gravity is the place of a reason in the table, its length for one that is not in it.
func gravity(name string) int {
	if at := slices.IndexFunc(table, func(r Reason) bool { return r.Name == name }); at >= 0 {
		return at
	}
	return len(table)
}

// IsFailure reports whether an Application with this reason has failed. Without a reason, and with one
// that a user asked for, it has not.
func IsFailure(name string) bool {
	reason, _ := Of(name)
	return name != "" && !reason.Wanted
}

// WasCarriedOut reports whether an object with this reason, or none, was brought to the spec as far as
// possible.
func WasCarriedOut(name string) bool {
	reason, _ := Of(name)
	return name == "" || reason.CarriedOut
}
