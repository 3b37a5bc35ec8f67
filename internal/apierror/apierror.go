// Package apierror reads the errors of API servers: whether a server answered, which fields
// it named, and which part of its text may be published. An answer may repeat values of
// its object, and no text of this package does.
//
// The package knows no client and retries nothing.
package apierror

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
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

// IsRefusal reports whether the API server refuses the content of a write: by the rules of its type, or
// by admission. A missing right is none, because then no other content helps.
func IsRefusal(err error) bool {
	var answer apierrors.APIStatus
	switch {
	case apierrors.IsInvalid(err):
		return true
	case !errors.As(err, &answer) || !apierrors.IsForbidden(err) && !apierrors.IsBadRequest(err):
		return false
	}
	status := answer.Status()
	if strings.HasPrefix(status.Message, ofWebhooks) {
		return strings.Contains(status.Message, " denied the request")
	}
	return status.Details != nil && slices.ContainsFunc(append(status.Details.Causes, denials(status)...), isDenial)
}

// IsImmutable reports whether the API server refuses a write because fields cannot change. Such an object has to be
// created anew.
func IsImmutable(err error) bool {
	var answer apierrors.APIStatus
	return errors.As(err, &answer) && slices.ContainsFunc(FieldErrors(err), func(cause metav1.StatusCause) bool {
		return isImmutable(cause) || unchangeable(answer.Status(), cause) != ""
	})
}

// ImmutableFields returns the fields of which an API server says that they, with everything below, cannot change.
func ImmutableFields(err error) []string {
	var fields []string
	for _, cause := range FieldErrors(err) {
		if isImmutable(cause) {
			fields = append(fields, cause.Field)
		}
	}
	return fields
}

func isImmutable(cause metav1.StatusCause) bool { return strings.Contains(cause.Message, "immutable") }

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

// FieldErrors returns the causes for which an API server refuses fields of an object as invalid. Their
// messages may repeat values, see [WithoutValue]. Admission policies name no field.
func FieldErrors(err error) []metav1.StatusCause {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || !apierrors.IsInvalid(err) || answer.Status().Details == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(answer.Status().Details.Causes), func(cause metav1.StatusCause) bool {
		return !isAboutField(cause.Type) || cause.Field == "" || cause.Field == "<nil>"
	})
}

// WithoutValue returns the message of a field error without the value. For the value "a b" with the
// explanation "a label is ...", it returns "Invalid value: a label is ...". It leaves out an explanation
// that repeats the value.
func WithoutValue(message string) string {
	for _, problem := range []field.ErrorType{field.ErrorTypeInvalid, field.ErrorTypeNotSupported, field.ErrorTypeDuplicate, field.ErrorTypeNotFound} {
		rest, ok := strings.CutPrefix(message, problem.String()+": ")
		if !ok {
			continue
		}
		var value any
		decoder := json.NewDecoder(strings.NewReader(rest))
		if decoder.Decode(&value) != nil { // another form of a value
			return problem.String()
		}
		explanation := rest[decoder.InputOffset():]
		if explanation != "" && !strings.HasPrefix(explanation, ": ") || repeats(explanation, value) {
			return problem.String()
		}
		return problem.String() + explanation
	}
	return message
}

// repeats reports whether a text has one of the texts in a value.
func repeats(text string, value any) bool {
	const least = 3 // shorter ones are parts of many words
	switch value := value.(type) {
	case string:
		return len(value) >= least && strings.Contains(text, value)
	case []any:
		return slices.ContainsFunc(value, func(one any) bool { return repeats(text, one) })
	case map[string]any:
		for _, one := range value {
			if repeats(text, one) {
				return true
			}
		}
	}
	return false
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
// only the reason, the object, and the fields and types of the causes, or the right that the client lacks.
func Explain(err error) string {
	return Cut(Describe(err, func(string, metav1.StatusCause) bool { return false }))
}

// Describe is [Explain] without the bound. It has the explanations of the causes that are shown: those of
// one short line, without the value. Explanations that have no value of an object are always part of it.
func Describe(err error, isShown func(kind string, cause metav1.StatusCause) bool) string {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var texts []string
		for _, part := range joined.Unwrap() {
			texts = append(texts, Describe(part, isShown))
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
		answer.Details = &metav1.StatusDetails{}
	}
	details := answer.Details
	if right, ok := RightOf(err); ok {
		return right.String()
	}
	text := strings.Trim(fmt.Sprintf("%s: %s %s", answer.Reason, details.Kind, details.Name), ": ")
	causes := []string{webhook.FindString(answer.Message)}
	for _, cause := range append(details.Causes, denials(answer)...) {
		causes = append(causes, strings.TrimPrefix(cause.Field+": "+describeCause(answer, cause, isShown), ": "))
	}
	if apierrors.IsBadRequest(err) && len(details.Causes) == 0 {
		causes = append(causes, undecoded(answer))
	}
	causes = slices.DeleteFunc(causes, func(said string) bool { return said == "" })
	return strings.Trim(text+": "+strings.Join(causes, ", "), ": ")
}

func describeCause(answer metav1.Status, cause metav1.StatusCause, isShown func(kind string, cause metav1.StatusCause) bool) string {
	isExplained := isAboutField(cause.Type) && isOfKubernetes(answer)
	switch {
	case unchangeable(answer, cause) != "":
		return problem(cause.Type) + ": " + unchangeable(answer, cause)
	case isDenial(cause) && !strings.HasPrefix(cause.Message, ofPolicies):
		return explanation(cause)
	case (isExplained || isDenial(cause)) && isShown(answer.Details.Kind, cause):
		return explanation(cause)
	}
	return problem(cause.Type)
}

// webhook matches the name of the webhook that denies a request, or does not answer. The rest of its text may
// repeat any value.
var webhook = regexp.MustCompile(`^admission webhook "[\w.-]+" denied the request|\bfailed calling webhook "[\w.-]+"`)

// decoding matches the explanations of a bad request that have no value of the object.
var decoding = regexp.MustCompile(`: json: (cannot unmarshal [a-z]+)(?: [\w.+-]+)?( into Go (?:struct field [\w.]+|value) of type [\w.\[\]*]+)$|` +
	`: (quantities must match the regular expression '[^']+'|unable to parse quantity's suffix|illegal base64 data at input byte \d+)$`)

// undecoded returns the explanation of a bad request without causes, or where the user reads it.
func undecoded(answer metav1.Status) string {
	if found := decoding.FindStringSubmatch(answer.Message); found != nil && !strings.HasPrefix(answer.Message, ofWebhooks) {
		return found[1] + found[2] + found[3]
	}
	return "the API server's text may repeat values: kubectl apply --dry-run=server shows it"
}

// The explanations of what may not change, which have no value of the object. Those of Kubernetes may name
// the fields that may change.
var (
	immutable   = regexp.MustCompile("(?:^|: )(field is immutable(?: when `immutable` is set| for unsuspended job once set)?|may not change once set|cannot change roleRef)$")
	immutableTo = regexp.MustCompile(`^Forbidden: ((?:pod updates may not change fields other than|updates to \w+ spec for fields other than|` +
		`spec is immutable after creation except|spec\.persistentvolumesource is immutable after creation|updates to \w+ are forbidden)[^\n]*)`)
)

// unchangeable returns the explanation of a field that may not change, or "".
func unchangeable(answer metav1.Status, cause metav1.StatusCause) string {
	if !isAboutField(cause.Type) {
		return ""
	}
	found := immutable.FindStringSubmatch(cause.Message)
	if found == nil && isOfKubernetes(answer) {
		found = immutableTo.FindStringSubmatch(cause.Message)
	}
	if found == nil {
		return ""
	}
	return found[1]
}

// IsQuota reports whether a quota refuses a request.
func IsQuota(err error) bool { return strings.Contains(forbidden(err), " quota: ") }

// missingRight matches the texts of authorization.
var missingRight = regexp.MustCompile(`^[Uu]ser ".*" (cannot|\(groups=.*\) is attempting to grant) `)

// IsMissingRight reports whether a permission of the client would allow a request.
func IsMissingRight(err error) bool { return missingRight.MatchString(forbidden(err)) }

// Right is what a client may not do. Resource may have a subresource. Namespace is empty for the whole cluster.
type Right struct{ User, Verb, Resource, Group, Namespace string }

// deniedRight matches what an API server says of a right: it has only names.
var deniedRight = regexp.MustCompile(`^User "([\w.:@-]+)" cannot ([\w:-]+) resource "([\w./-]+)" in API group "([\w.-]*)" (?:at the cluster scope|in the namespace "([\w-]+)")`)

// RightOf returns the right that a client lacks for a request, and whether the API server names it.
func RightOf(err error) (Right, bool) {
	found := deniedRight.FindStringSubmatch(forbidden(err))
	if found == nil {
		return Right{}, false
	}
	return Right{found[1], found[2], found[3], found[4], found[5]}, true
}

// String returns "system:serviceaccount:demo:krake-deployer may not create services in the namespace demo".
func (r Right) String() string {
	verb, resource := r.Verb, r.Resource
	if r.Group != "" {
		kind, part, isPart := strings.Cut(resource, "/")
		if resource = kind + "." + r.Group; isPart {
			resource += "/" + part
		}
	}
	text := r.User + " may not "
	if as, ok := strings.CutPrefix(verb, application.ActingAs); ok {
		text += "act as a service account to "
		verb = as
	}
	if text += verb + " " + resource; r.Namespace != "" {
		text += " in the namespace " + r.Namespace
	}
	return text
}

// forbidden returns why an API server forbids a request.
func forbidden(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return ""
	}
	if strings.HasPrefix(status.Status().Message, ofWebhooks) {
		return ""
	}
	_, why, _ := strings.Cut(status.Status().Message, " is forbidden: ")
	return why
}

// isOfKubernetes reports whether Kubernetes itself has explained the causes. The rules of a definition of a
// kind, and webhooks, may repeat any value of an object.
func isOfKubernetes(answer metav1.Status) bool {
	group := answer.Details.Group
	isBuiltIn := !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
	return isBuiltIn && !strings.HasPrefix(answer.Message, ofWebhooks)
}

// isDenial reports whether the cause is the text of an admission policy, or one of Kubernetes that has only names and
// quantities: of Pod Security, of a quota, and of what a Pod refers to. They name no field.
func isDenial(cause metav1.StatusCause) bool {
	return cause.Type == "" && cause.Field == "" && slices.ContainsFunc([]string{
		ofPolicies, "violates PodSecurity ", "exceeded quota: ", "failed quota: ", "error looking up service account ", "no PriorityClass with name ",
	}, func(beginning string) bool { return strings.HasPrefix(cause.Message, beginning) })
}

// denials returns the denial of an answer that has it only in its message.
func denials(answer metav1.Status) []metav1.StatusCause {
	_, why, _ := strings.Cut(answer.Message, " is forbidden: ")
	cause := metav1.StatusCause{Message: why}
	if len(answer.Details.Causes) > 0 || !isDenial(cause) {
		return nil
	}
	return []metav1.StatusCause{cause}
}

// maxExplanation bounds the explanation of a cause, in bytes. Longer ones, and those of several lines,
// show differences of whole objects.
const maxExplanation = 256

// ofWebhooks begins the denials of webhooks, ofPolicies those of policies, and ofOurPolicies those of this
// project's, which repeat names only.
const (
	ofWebhooks    = "admission webhook "
	ofPolicies    = "ValidatingAdmissionPolicy '"
	ofOurPolicies = ofPolicies + "krake-"
)

// explanation returns the message of a cause without the value, or its type if the message may have more
// of the object.
func explanation(cause metav1.StatusCause) string {
	said := WithoutValue(cause.Message)
	if policy, _, ok := strings.Cut(said, " denied request: "); ok && !strings.HasPrefix(said, ofOurPolicies) {
		said = policy // its text may repeat any value
	}
	if len(said) > maxExplanation || strings.ContainsAny(said, "\n{") {
		return problem(cause.Type)
	}
	return said
}

// problem returns the API server's words for the type of a cause, or else the type.
func problem(cause metav1.CauseType) string {
	if isAboutField(cause) {
		return field.ErrorType(cause).String()
	}
	return string(cause)
}

func isAboutField(cause metav1.CauseType) bool { return strings.HasPrefix(string(cause), "FieldValue") }
