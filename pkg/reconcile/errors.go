package reconcile

import (
	"errors"
	"fmt"
	"net"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// unanswered tells if an error is that of a connection, or of an API server that
// cannot answer now: it says nothing about the Application.
func unanswered(err error) bool {
	return unconnected(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) ||
		apierrors.IsServiceUnavailable(err) || apierrors.IsTooManyRequests(err)
}

// unconnected tells if an error is that of a connection: no API server says anything.
func unconnected(err error) bool {
	var connection net.Error
	return errors.As(err, &connection) || utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err)
}

// scrubbed is an error whose text is safe to log.
type scrubbed struct{ error }

func (s scrubbed) Error() string { return explain(s.error) }
func (s scrubbed) Unwrap() error { return s.error }

// maxMessage bounds the text of a condition.
const maxMessage = 1024

func cut(text string) string { return application.Cut(text, maxMessage) }

// explain gives the text of an error without what the API server's answer may
// repeat of the object: of its causes, only the fields are told.
func explain(err error) string { return cut(describe(err)) }

func describe(err error) string {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var texts string
		for _, part := range joined.Unwrap() {
			if texts != "" {
				texts += "; "
			}
			texts += describe(part)
		}
		return texts
	}
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &status):
	case unconnected(err): // its text has ports, which differ each time
		return "the API server does not answer"
	default:
		return err.Error()
	}
	answer := status.Status()
	if answer.Details == nil {
		return string(answer.Reason)
	}
	text := strings.TrimSpace(fmt.Sprintf("%s: %s %s", answer.Reason, answer.Details.Kind, answer.Details.Name))
	for _, cause := range answer.Details.Causes {
		text += fmt.Sprintf("; %s at %s", cause.Type, cause.Field)
	}
	return text
}
