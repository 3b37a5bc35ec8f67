package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/krake-observer/krake-observer/internal/apierror"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// Verdict is the result of a pass for one object, or for the whole Application. A verdict without a
// reason reports success.
type Verdict struct {
	Object  manifest.ID
	Reason  string
	Message string
	// Fields are the fields that differ.
	Fields []schema.Path
	// Err makes the queue try again. Again is the time of the next try, zero for none.
	Err   error
	Again time.Time
}

// Failed returns the verdict on an error, with the reason's remedy if the error has none.
func Failed(reason string, err error) Verdict {
	return Verdict{Reason: reason, Message: Explain(reason, err), Err: err}
}

// Explain returns the text of an error, with the API server's explanations of fields that are not private,
// and the remedy.
func Explain(reason string, err error) string {
	return Advise(err, Remedy(reason, err))
}

// Advise is [Explain] with another remedy.
func Advise(err error, remedy string) string {
	text := apierror.Describe(err, isShown)
	if remedy != "" {
		text += ": " + remedy
	}
	return apierror.Cut(text)
}

// Remedy returns the user's way out of an error with a reason: that of its cause, if it is known, or that of the
// reason.
func Remedy(reason string, err error) string {
	switch {
	case reason == Forbidden && apierror.IsQuota(err):
		return "raise the quota, or request less: no permission helps"
	case reason == Forbidden && apierrors.IsForbidden(err) && !apierror.IsMissingRight(err):
		return "change the object, or what refuses it: no permission helps"
	}
	if right, ok := apierror.RightOf(err); ok && reason == Forbidden {
		if strings.HasPrefix(right.User, application.AgentUserPrefix) {
			return "grant it to the agent, by a ClusterRole with the label " + application.AggregateLabel + "=true"
		}
		return "grant it to this service account"
	}
	known, _ := Of(reason)
	return known.Remedy
}

// isShown reports whether the explanation of a cause may be published. An explanation of a private field
// may repeat values, except for three types that have none. Those of all annotations are about their names
// and their size.
func isShown(kind string, cause metav1.StatusCause) bool {
	switch field.ErrorType(cause.Type) {
	case field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany:
		return true
	}
	path, err := schema.ParsePath(cause.Field)
	isSecret := kind == "secrets" // the denial of a policy names the resource
	return cause.Field == "metadata.annotations" || !isSecret && err == nil && !IsPrivate(kind, schema.FieldPath(path.Names()...), nil)
}

// String returns "apps/v1 Deployment demo/web: spec.replicas: held until ...".
func (v Verdict) String() string {
	var parts []string
	if v.Object != (manifest.ID{}) && !strings.Contains(v.Message, v.Object.String()) {
		parts = append(parts, v.Object.String())
	}
	if len(v.Fields) > 0 {
		parts = append(parts, join(v.Fields, ", "))
	}
	if v.Message != "" {
		parts = append(parts, v.Message)
	}
	return strings.Join(parts, ": ")
}

// FailureOf returns the condition Reconciled of an Application that fails. If the Application does not
// fail, the condition is True and has no reason. ok reports whether the conditions say either.
func FailureOf(conditions []metav1.Condition) (failure metav1.Condition, ok bool) {
	found := meta.FindStatusCondition(conditions, application.ReconciledCondition)
	if found == nil {
		return failure, false
	}
	of, isKnown := Of(found.Reason)
	switch {
	case isKnown && !of.Wanted:
		return *found, true
	case isKnown, found.Reason == driftedReason, found.Status == metav1.ConditionTrue:
		return metav1.Condition{Type: found.Type, Status: metav1.ConditionTrue}, true
	}
	return metav1.Condition{}, false
}

// gravest returns the gravest reason of all, and its verdicts.
func gravest(verdicts []Verdict) (reason string, found []Verdict) {
	for _, v := range verdicts {
		if v.Reason != "" && (reason == "" || gravity(v.Reason) < gravity(reason)) {
			reason = v.Reason
		}
	}
	if reason == "" {
		return "", nil
	}
	return reason, filter(verdicts, func(v Verdict) bool { return v.Reason == reason })
}

// about returns the verdicts whose reasons make a condition true.
func about(condition string, verdicts []Verdict) []Verdict {
	return filter(verdicts, func(v Verdict) bool {
		reason, _ := Of(v.Reason)
		return slices.Contains(reason.Conditions, condition)
	})
}

func filter(verdicts []Verdict, is func(Verdict) bool) []Verdict {
	return slices.DeleteFunc(slices.Clone(verdicts), func(v Verdict) bool { return !is(v) })
}

func join[T fmt.Stringer](of []T, separator string) string {
	texts := make([]string, 0, len(of))
	for _, one := range of {
		texts = append(texts, one.String())
	}
	return strings.Join(texts, separator)
}
