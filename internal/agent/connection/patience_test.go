package connection

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/test/kit"
)

// An answer that never comes, or never ends, has a time limit. A watch has none.
func TestPatient(t *testing.T) {
	const patience, longer = 50 * time.Millisecond, 150 * time.Millisecond
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/never":
			<-r.Context().Done()
		case "/half":
			_, _ = io.WriteString(w, "half")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		case "/late":
			_ = http.NewResponseController(w).Flush()
			<-time.After(longer)
			_, _ = io.WriteString(w, "late")
		default:
			_, _ = io.WriteString(w, "answer")
		}
	}))
	t.Cleanup(server.Close)
	client := &http.Client{Transport: patient{http.DefaultTransport, patience}}
	for _, c := range []struct{ why, path, want string }{
		{"an answer that comes", "/", "answer"},
		{"an answer that never comes", "/never", ""},
		{"an answer that never ends", "/half", ""},
		{"a watch, whose events come when they come", "/late?watch=true", "late"},
	} {
		t.Run(c.why, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+c.path, http.NoBody)
			kit.Must(t, err)
			got, err := answerOf(client, request)
			switch {
			case c.want == "" && !errors.Is(err, context.DeadlineExceeded):
				t.Errorf("got %q and %v, want the deadline", got, err)
			case c.want != "" && (err != nil || got != c.want):
				t.Errorf("got %q and %v, want %q", got, err, c.want)
			}
		})
	}
}

func answerOf(client *http.Client, request *http.Request) (string, error) {
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(response.Body)
	return string(body), errors.Join(err, response.Body.Close())
}
