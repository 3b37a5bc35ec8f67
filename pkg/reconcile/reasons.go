package reconcile

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/krake-observer/krake-observer/pkg/apierror"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/plan"
	"github.com/krake-observer/krake-observer/pkg/status"
)

// slowRetry is how often the loop tries again what a person or another controller has to
// bring about, of which no event tells.
const slowRetry = time.Minute

// errForeign is the error of an object that belongs to no Application.
var errForeign = errors.New("the object exists and does not belong to this Application")

// ownedError is the error of an object that is another Application's.
type ownedError struct{ owner string }

func (e ownedError) Error() string { return "the object belongs to the Application " + e.owner }

// errUnclaimed is the error of an object that cannot be created now.
var errUnclaimed = errors.New("the hub does not answer, and has to take note of an object before it is created: it is tried again")

var (
	errNoHooks = fmt.Errorf("%w: annotation %s: this agent has no endpoint for hooks: leave it out, or have an administrator install the hooks (overlays/hooks)",
		plan.ErrRefused, application.HooksAnnotation)
	errNoSources = fmt.Errorf("%w: this agent fetches nothing from URLs: put the text, or the archive, in its place, or have an administrator start it with --url-source-hosts and --require-service-account",
		plan.ErrRefused)
)

// reasonOf returns the reason of a verdict on an error.
func reasonOf(err error) string {
	var owned ownedError
	switch {
	case errors.As(err, &owned):
		return status.OwnedByAnother
	case errors.Is(err, errForeign):
		return status.AlreadyExists
	case errors.Is(err, ErrNoAccount):
		return status.NoAccount
	case meta.IsNoMatchError(err):
		return status.KindNotFound
	case apierror.IsUnconnected(err):
		return status.Unreachable
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return status.Terminating
	case apierrors.IsForbidden(err):
		return status.Forbidden
	case apierrors.IsInvalid(err):
		return status.Invalid
	}
	return status.Error
}

// verdictOn is the verdict on an error, which says how it is tried again.
func verdictOn(err error, now time.Time) status.Verdict {
	failed := status.Failed(reasonOf(err), err)
	reason, _ := status.Of(failed.Reason)
	if reason.Retry != status.Backoff {
		failed.Err = nil
	}
	if reason.Retry == status.Slowly {
		failed.Again = now.Add(slowRetry)
	}
	return failed
}
