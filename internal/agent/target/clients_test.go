package target

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/test/check"
)

// An API server cannot fill the agent's memory with the description of a kind.
func TestAnEndlessDescriptionIsNotRead(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/openapi/v3" {
			_, err := w.Write([]byte(`{"paths": {"apis/example.com/v1": {"serverRelativeURL": "/openapi/v3/apis/example.com/v1"}}}`))
			check.Must(t, err)
			return
		}
		for part := []byte(strings.Repeat(" ", 1<<20)); r.Context().Err() == nil; {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	clients, err := NewClients(&rest.Config{Host: server.URL})
	check.Must(t, err)
	documents, err := clients.Discovery.OpenAPIV3().Paths()
	check.Must(t, err)
	_, err = documents["apis/example.com/v1"].Schema("application/json")
	check.Fails(t, "the document", err, "too large")
}
