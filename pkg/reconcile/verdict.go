package reconcile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// verdict is what there is to say of one object, or of the Application as a
// whole, after a pass. Without a reason it is as it should be.
type verdict struct {
	object  manifest.ID
	reason  string
	message string
	// fields are those that differ.
	fields []schema.Path
	// err is to be tried again by the queue, again when there is a time for it.
	err   error
	again time.Time
}

// The reasons, the gravest first.
const (
	reasonUnreadable      = "Unreadable"
	reasonRefused         = "Refused"
	reasonOwnedByAnother  = "OwnedByAnother"
	reasonAlreadyExists   = "AlreadyExists"
	reasonInvalid         = "Invalid"
	reasonUnreachable     = "TargetUnreachable"
	reasonNoAccount       = "ServiceAccountNotFound"
	reasonForbidden       = "Forbidden"
	reasonTerminating     = "NamespaceTerminating"
	reasonKindNotFound    = "KindNotFound"
	reasonDeletionBlocked = "DeletionBlocked"
	reasonError           = "Error"
	reasonIneffective     = "Ineffective"
	reasonContended       = "Contended"
	reasonHeld            = "Held"
	reasonObserved        = "Observed"
	reasonNotShutDown     = "ShutdownNotConfirmed"
	reasonNotFetched      = "SourceNotFetched"
	// The reference's word.
	reasonInvalidTosca = "INVALID_TOSCA_MANIFEST"
)

// gravity sorts reasons; unknown ones come last.
func gravity(reason string) int {
	order := []string{
		reasonUnreadable, reasonUnreachable, reasonInvalidTosca, reasonNotFetched, reasonRefused, reasonNoAccount, reasonOwnedByAnother, reasonAlreadyExists, reasonInvalid, reasonForbidden,
		reasonTerminating,
		reasonKindNotFound, reasonDeletionBlocked, reasonError, reasonIneffective, reasonContended, reasonHeld, reasonObserved,
	}
	if at := slices.Index(order, reason); at >= 0 {
		return at
	}
	return len(order)
}

// slowRetry is how often something is tried again that somebody else has to
// bring about, of which no event tells.
const slowRetry = time.Minute

// fail is the verdict on an object about which something went wrong. What only
// somebody else can mend is looked at once in a while, everything else by the
// queue, with back-off.
func (p *pass) fail(i int, err error) {
	failed := verdict{reason: reasonOf(err), message: told(err)}
	switch failed.reason {
	case reasonInvalid:
	case reasonOwnedByAnother, reasonAlreadyExists, reasonTerminating, reasonKindNotFound:
		failed.again = p.now.Add(slowRetry)
	default:
		failed.err = err
	}
	p.verdicts[i] = failed
}

// told explains an error, with what to do about it where the error itself does not say so.
func told(err error) string {
	wayOut := map[string]string{
		reasonAlreadyExists:  "annotate the Application with " + application.AdoptAnnotation + "=true to take it over, or choose another name",
		reasonOwnedByAnother: "leave it out of one of the two",
		reasonForbidden:      "bind whoever writes it, the agent or the Application's service account, to a role with that right",
		reasonTerminating:    "it is created when the namespace is gone and there again",
		reasonKindNotFound:   "it is created when the cluster has the kind; or correct apiVersion and kind",
		reasonInvalid:        "correct it in the Application",
	}[reasonOf(err)]
	if wayOut == "" {
		return explain(err)
	}
	return cut(describe(err) + ": " + wayOut)
}

// failWrite is the verdict on an object that could not be written.
func (p *pass) failWrite(i int, err error) {
	p.fail(i, err)
	p.memory.object(p.planned[i].ID).failed.add(p.verdicts[i], p.now)
}

// rests tells if an object is left alone for a while, because it could not be
// written several times in a row.
func (p *pass) rests(i int) bool {
	resting, rests := p.memory.object(p.planned[i].ID).failed.rests(p.now)
	if rests {
		p.verdicts[i] = resting
	}
	return rests
}

func reasonOf(err error) string {
	var owned ownedError
	switch {
	case errors.As(err, &owned):
		return reasonOwnedByAnother
	case errors.Is(err, errForeign):
		return reasonAlreadyExists
	case errors.Is(err, ErrNoAccount):
		return reasonNoAccount
	case meta.IsNoMatchError(err):
		return reasonKindNotFound
	case unconnected(err):
		return reasonUnreachable
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return reasonTerminating
	case apierrors.IsForbidden(err):
		return reasonForbidden
	case apierrors.IsInvalid(err):
		return reasonInvalid
	}
	return reasonError
}

// isFailure tells reasons for which an Application has failed from those that
// somebody wants.
func isFailure(reason string) bool {
	switch reason {
	case "", reasonContended, reasonHeld, reasonObserved:
		return false
	}
	return true
}

// String gives "apps/v1 Deployment demo/web: spec.replicas: held until ...".
func (v verdict) String() string {
	var parts []string
	if v.object != (manifest.ID{}) && !strings.Contains(v.message, v.object.String()) {
		parts = append(parts, v.object.String())
	}
	if len(v.fields) > 0 {
		parts = append(parts, join(v.fields))
	}
	if v.message != "" {
		parts = append(parts, v.message)
	}
	return strings.Join(parts, ": ")
}

// gravest gives the verdicts with the gravest reason of all, and that reason.
func gravest(verdicts []verdict) (reason string, found []verdict) {
	for _, v := range verdicts {
		if v.reason != "" && (reason == "" || gravity(v.reason) < gravity(reason)) {
			reason = v.reason
		}
	}
	return reason, withReason(verdicts, reason)
}

func withReason(verdicts []verdict, reasons ...string) []verdict {
	var found []verdict
	for _, v := range verdicts {
		if v.reason != "" && slices.Contains(reasons, v.reason) {
			found = append(found, v)
		}
	}
	return found
}

func texts[T fmt.Stringer](of []T) string {
	parts := make([]string, 0, len(of))
	for _, one := range of {
		parts = append(parts, one.String())
	}
	return cut(strings.Join(parts, "; "))
}
