package proxy

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Fault is what befalls a call. The zero value: the call is not sent on, and the
// connection is cut.
type Fault struct {
	// Before is done first, and then the call is carried out and answered as if nothing
	// had befallen it; nothing else counts.
	Before func()
	// Sent: the API server carries the call out before the fault.
	Sent bool
	// Do is done next; it may kill the client.
	Do func()
	// Delay is how long the answer is kept back; Mute: there is none, and the
	// connection stays open until the client gives up.
	Delay time.Duration
	Mute  bool
	// Answer is the code that the client gets, 0 if the connection is cut, with
	// everything else that goes over it.
	Answer int
	// Body is that of the answer; a Status that fits the code if empty.
	Body []byte
}

// reply answers the client as the fault says.
func (f *Fault) reply(w http.ResponseWriter, r *http.Request) {
	if f.Do != nil {
		f.Do()
	}
	if f.Delay > 0 {
		select {
		case <-time.After(f.Delay):
		case <-r.Context().Done():
		}
	}
	if f.Mute {
		<-r.Context().Done()
		panic(http.ErrAbortHandler) // the client has left
	}
	if f.Answer == 0 {
		cut(r)
		panic(http.ErrAbortHandler)
	}
	body := f.Body
	if len(body) == 0 {
		body = []byte(statusOf(f.Answer))
	}
	w.Header().Set("Content-Type", "application/json")
	if f.Answer == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", strconv.Itoa(RetryAfter))
	}
	w.WriteHeader(f.Answer)
	_, _ = w.Write(body) //nolint:gosec // the client is no browser; and one that has gone needs no answer
}

// RetryAfter is how many seconds a client that is answered with 429 has to wait.
const RetryAfter = 1

// reasons are those of a Status.
var reasons = map[int]string{
	http.StatusForbidden: "Forbidden", http.StatusConflict: "Conflict", http.StatusGone: "Expired",
	http.StatusUnprocessableEntity: "Invalid", http.StatusTooManyRequests: "TooManyRequests",
	http.StatusInternalServerError: "InternalError", http.StatusServiceUnavailable: "ServiceUnavailable",
	http.StatusGatewayTimeout: "Timeout",
}

func statusOf(code int) string {
	return fmt.Sprintf(`{"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "%s, says the test", "reason": %q, "code": %d}`,
		strings.ToLower(http.StatusText(code)), reasons[code], code)
}
