package proxy

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Fault is what happens to a call. The zero value does not send the call, and cuts the
// connection.
type Fault struct {
	// Before is called first. The call is then carried out and answered as usual, and
	// the other fields are ignored.
	Before func()
	// Sent: the API server carries the call out before the fault.
	Sent bool
	// Do is called next; it may kill the client.
	Do func()
	// Delay delays the answer. Mute: no answer is sent, and the connection stays open
	// until the client gives up.
	Delay time.Duration
	Mute  bool
	// Answer is the status code for the client. 0 cuts the connection, with all other
	// requests on it.
	Answer int
	// Body is the body of the answer, by default a Status that fits the code.
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
		panic(http.ErrAbortHandler) // the client has gone
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
		w.Header().Set("Retry-After", retryAfter)
	}
	w.WriteHeader(f.Answer)
	_, _ = w.Write(body) //nolint:gosec // the client is no browser; and one that has gone needs no answer
}

// retryAfter is how many seconds a client must wait after the answer 429.
const retryAfter = "1"

// reasons has the reason of a Status by its code.
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
