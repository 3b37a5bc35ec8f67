package hooks

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// retryAfter is when to try again: by then the rate allows another request, or another
// replica acts.
const (
	retryAfterRate = time.Second
	retryAfterTurn = time.Second
	retryAfterHub  = 5 * time.Second
)

// answer is the answer to a request.
type answer struct {
	code   int
	header map[string]string
	body   any
	// cause is for the log.
	cause error
}

// refusal is the body of an answer without an Application.
type refusal struct {
	Code    int                 `json:"code"`
	Reason  metav1.StatusReason `json:"reason"`
	Message string              `json:"message"`
}

func refuse(code int, reason metav1.StatusReason, message string) *answer {
	return &answer{code: code, body: refusal{Code: code, Reason: reason, Message: message}}
}

// after sets the time after which to try again.
func (a *answer) after(wait time.Duration) *answer {
	a.header = map[string]string{"Retry-After": strconv.Itoa(int(wait.Seconds()))}
	return a
}

// because sets the cause, which appears in the log only.
func (a *answer) because(cause error) *answer {
	a.cause = cause
	return a
}

// level returns the level of the log. Frequent answers that say little have a higher one.
func (a *answer) level() int {
	switch {
	case a.code == http.StatusOK, a.cause != nil:
		return 0
	}
	return 1
}

func unknownPath() *answer {
	return refuse(http.StatusNotFound, metav1.StatusReasonNotFound,
		"unknown path: call the URL that is in the variable "+application.URLVariable(application.Complete)+" or "+application.URLVariable(application.Shutdown))
}

func wrongMethod() *answer {
	a := refuse(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "use the method PUT")
	a.header = map[string]string{"Allow": http.MethodPut}
	return a
}

func tooManyRequests() *answer {
	return refuse(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "too many requests: try again after the time in Retry-After").after(retryAfterRate)
}

func wrongType() *answer {
	return refuse(http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType, "send JSON, with the header Content-Type: application/json")
}

func tooLarge() *answer {
	return refuse(http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge,
		"the body is larger than "+strconv.Itoa(maxBody)+` bytes: send {"token": "..."} alone`)
}

func badBody() *answer {
	return refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest, `the body is not one JSON object with one field "token", a text: send {"token": "..."}`)
}

func unreadBody() *answer {
	return refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest, "the body was not complete in time: send it again")
}

// The causes of unproven, which only the log has.
var (
	errNoApplication = errors.New("there is no such Application here: it may be deleted already")
	errWrongToken    = errors.New("this is not the token of the hook, or the Application has no such hook")
	errNoCertificate = errors.New("the client certificate is missing, or not that of the hook of this Application")
)

// unproven is one answer for everything that a caller does not prove: it must not tell which
// Applications there are.
func unproven(hook application.Hook) *answer {
	return refuse(http.StatusUnauthorized, metav1.StatusReasonUnauthorized,
		"the call is not proven to come from a Pod of this Application, or the Application does not exist, or has no hook "+string(hook)+": "+
			"send the value of "+application.TokenVariable(hook)+" with the client certificate of "+application.CertsPath(hook)+
			", of a Pod that was started since the token was made; the log of the agent has the cause")
}

func notDegraded() *answer {
	return refuse(http.StatusBadRequest, metav1.StatusReasonBadRequest,
		"the shutdown can be tried again only after it was given up, in the state "+string(application.StateDegraded))
}

func busy() *answer {
	return refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "too many requests at once: try again after the time in Retry-After").after(retryAfterTurn)
}

func elsewhere() *answer {
	return refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable,
		"another replica of the agent acts for the Application: try again after the time in Retry-After").after(retryAfterTurn)
}

func unavailable(cause error) *answer {
	return refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable,
		"the agent cannot do it now: try again after the time in Retry-After").after(retryAfterHub).because(cause)
}

func panicked() *answer {
	return refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError, "the agent has failed: its log has the reason").
		because(errors.New("a panic"))
}

// acted has the same fields of the Application as the answer of Krake's API.
type acted struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	Metadata   actedOn     `json:"metadata"`
	Status     actedStatus `json:"status"`
}

type actedOn struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	UID       string `json:"uid"`
}

type actedStatus struct {
	State application.State `json:"state"`
}

func accepted(app *application.Application, state application.State) *answer {
	return &answer{code: http.StatusOK, body: acted{
		APIVersion: application.Prefix + application.Format,
		Kind:       "Application",
		Metadata:   actedOn{Name: app.Name, Namespace: app.Namespace, UID: string(app.UID)},
		Status:     actedStatus{State: state},
	}}
}

// write sends the answer.
func (a *answer) write(w http.ResponseWriter) error {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	for name, value := range a.header {
		header.Set(name, value)
	}
	w.WriteHeader(a.code)
	return json.NewEncoder(w).Encode(a.body)
}
