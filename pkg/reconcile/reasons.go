package reconcile

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/krake-observer/krake-observer/internal/apierror"
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// slowRetry is the interval for failures that a person or another controller has to resolve, when
// no event reports that.
const slowRetry = time.Minute

// errForeign is the error of an object that belongs to no Application.
var errForeign = errors.New("the object exists and does not belong to this Application")

// errNotTakenOver is the error of an object that the loop would take over if it might write.
var errNotTakenOver = errors.New("the object exists without the marks of this Application, and would be taken over in mode enforce")

// ownedError is the error of an object that belongs to another Application.
type ownedError struct{ owner string }

func (e ownedError) Error() string { return "the object belongs to the Application " + e.owner }

// notEstablishedError is the error of an object whose kind a definition of the same Application defines, which the target does not serve
// yet.
type notEstablishedError struct{ definition string }

func (e notEstablishedError) Error() string {
	return "the cluster does not serve the kind yet: it waits for the CustomResourceDefinition " + e.definition + " of this Application"
}

// noValuesError is the error of a Secret whose source does not exist.
type noValuesError struct{ source manifest.Ref }

func (e noValuesError) Error() string {
	return "the source of its values does not exist: " + e.source.String()
}

// errNoReader is the error of an Application whose Secrets get values that no account reads.
var errNoReader = fmt.Errorf("%w: annotation %s: only a service account reads the values, never the agent: name one with annotation %s",
	plan.ErrRefused, application.ValuesFromAnnotation, application.ServiceAccountAnnotation)

// errOwnSource is the error of a Secret that would be its own source.
var errOwnSource = fmt.Errorf("%w: annotation %s: the Secret would be its own source: give one of the two another name",
	plan.ErrRefused, application.ValuesFromAnnotation)

// errUnclaimed is the error of an object that cannot be created now.
var errUnclaimed = errors.New("the hub does not answer, and must record an object before it is created: it is tried again")

var (
	errNoHooks = fmt.Errorf("%w: annotation %s: this agent has no endpoint for hooks: leave it out, or have an administrator install the hooks (overlays/hooks)",
		plan.ErrRefused, application.HooksAnnotation)
	errNoSources = fmt.Errorf("%w: this agent fetches nothing from URLs: put the text, or the archive, in its place, or have an administrator start it with --url-source-hosts and --require-service-account",
		plan.ErrRefused)
)

// userFacing is an error that the status of the Application states.
type userFacing struct{ error }

// Unwrap implements errors.Unwrap.
func (s userFacing) Unwrap() error { return s.error }

// UserFacing marks an error as one that the status of the Application states, nil as nil.
func UserFacing(err error) error {
	if err == nil {
		return nil
	}
	return userFacing{err}
}

// IsStated reports whether the status of the Application states the whole error, so that its user
// can act on it. Others are for the administrator of the agent.
func IsStated(err error) bool {
	switch e := err.(type) { //nolint:errorlint // it walks the tree itself
	case userFacing:
		return true
	case interface{ Unwrap() error }:
		return IsStated(e.Unwrap())
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(e.Unwrap(), func(part error) bool { return !IsStated(part) })
	}
	return false
}

// reasonOf returns the reason for an error.
func reasonOf(err error) string {
	var owned ownedError
	var waits notEstablishedError
	var valueless noValuesError
	switch {
	case errors.As(err, &owned):
		return status.OwnedByAnother
	case errors.Is(err, errForeign):
		return status.AlreadyExists
	case errors.Is(err, ErrNoAccount):
		return status.NoAccount
	case errors.As(err, &waits):
		return status.NotEstablished
	case errors.As(err, &valueless):
		return status.NoValues
	case meta.IsNoMatchError(err):
		return status.KindNotFound
	case apierror.IsUnconnected(err):
		return status.Unreachable
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return status.Terminating
	case apierrors.IsForbidden(err), errors.Is(err, ErrUnreadable):
		return status.Forbidden
	case apierrors.IsInvalid(err):
		return status.Invalid
	}
	return status.Error
}

// verdictOn returns the verdict on an error, with the time of the next try.
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
