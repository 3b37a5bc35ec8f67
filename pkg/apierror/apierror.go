// Package apierror reads the errors of API servers: whether a server answered, which fields
// it named, and which part of its text may be published. An answer may repeat values of
// its object, and no text of this package does.
//
// The package knows no client and retries nothing.
package apierror

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// IsUnanswered reports whether the connection failed, or the API server could not
// answer now. Such an error says nothing about the request.
func IsUnanswered(err error) bool {
	return IsUnconnected(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err)
}

// IsUnconnected reports whether the connection failed, without an answer of an API server.
func IsUnconnected(err error) bool {
	var connection interface { // net.Error, without package net
		error
		Timeout() bool
		Temporary() bool
	}
	return errors.As(err, &connection) || utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err)
}

// Fields returns the fields that an API server names when it refuses an object, such as
// "spec.ports[0].nodePort".
func Fields(err error) []string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		if cause.Type != metav1.CauseTypeUnexpectedServerResponse && cause.Field != "" && cause.Field != "<nil>" {
			fields = append(fields, cause.Field)
		}
	}
	return fields
}

// Names returns the field names of a path that an API server wrote, without indices:
// "spec.ports[0].nodePort" has spec, ports, nodePort.
func Names(field string) []string {
	var found []string
	for part := range strings.SplitSeq(field, ".") {
		if name, _, _ := strings.Cut(part, "["); name != "" {
			found = append(found, name)
		}
	}
	return found
}

// Scrub returns the error with a text that is safe to log, nil for nil. It unwraps to err.
func Scrub(err error) error {
	if err == nil {
		return nil
	}
	return scrubbed{err}
}

type scrubbed struct{ error }

func (s scrubbed) Error() string { return Explain(s.error) }
func (s scrubbed) Unwrap() error { return s.error }

// maxText bounds the text of a condition, in bytes.
const maxText = 1024

// Cut returns the text, shortened to the limit of a condition.
func Cut(text string) string { return application.Cut(text, maxText) }

// Explain returns the text of an error, shortened by [Cut]. From an API server's answer, it has
// only the reason, the object, and the fields and types of the causes.
func Explain(err error) string { return Cut(Describe(err)) }

// Describe is [Explain] without the bound.
func Describe(err error) string {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var texts []string
		for _, part := range joined.Unwrap() {
			texts = append(texts, Describe(part))
		}
		return strings.Join(texts, "; ")
	}
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &status):
	case IsUnconnected(err): // its text has ports, which differ each time
		return "the API server does not answer"
	default:
		return err.Error()
	}
	answer := status.Status()
	if answer.Details == nil {
		return string(answer.Reason)
	}
	text := strings.TrimSpace(fmt.Sprintf("%s: %s %s", answer.Reason, answer.Details.Kind, answer.Details.Name))
	var causes []string
	for _, cause := range answer.Details.Causes {
		causes = append(causes, strings.TrimPrefix(cause.Field+": "+problem(cause.Type), ": "))
	}
	return strings.TrimSuffix(text+": "+strings.Join(causes, ", "), ": ")
}

// problem returns the API server's words for the type of a cause, or else the type.
func problem(cause metav1.CauseType) string {
	if strings.HasPrefix(string(cause), "FieldValue") {
		return field.ErrorType(cause).String()
	}
	return string(cause)
}
