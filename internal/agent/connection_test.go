package agent

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// A connection over which nothing arrives any more is left behind: whoever waits
// for an answer gets an error at once, and the next request a new connection.
func TestRenew(t *testing.T) {
	var silent context.Context
	silent, speak := context.WithCancel(t.Context())
	asked := make(chan string, 10)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Header.Get("Authorization") + " " + r.RemoteAddr
		<-silent.Done()
		w.WriteHeader(http.StatusNotFound)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	defer speak()
	connection, err := newConnection(&rest.Config{
		Host: server.URL, BearerToken: "token", TLSClientConfig: rest.TLSClientConfig{Insecure: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	list := func() error {
		client, err := metadata.NewForConfig(connection.Config) // clients share the connection
		if err != nil {
			return err
		}
		_, err = client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "services"}).List(t.Context(), metav1.ListOptions{})
		return err
	}
	answers := make(chan error, 2)
	go func() { answers <- list() }()
	first := <-asked
	go func() { answers <- list() }()
	if second := <-asked; second != first || first[:13] != "Bearer token " {
		t.Errorf("requests came by %q and %q", first, second)
	}
	began := time.Now()
	connection.renew()
	for range cap(answers) {
		if err := <-answers; err == nil {
			t.Error("nobody answered, and it is no error")
		}
	}
	if since := time.Since(began); since > patience/3 {
		t.Errorf("who waited got an error after %s", since)
	}
	speak()
	if err := list(); err == nil {
		t.Error("404 is no error")
	}
	if third := <-asked; third == first {
		t.Error("the connection is the same")
	}
}

// Who brings a way of their own to reach the server has it used.
func TestConnectionOfTheirOwn(t *testing.T) {
	config := &rest.Config{Host: "https://a.example", Transport: http.DefaultTransport}
	connection, err := newConnection(config)
	if err != nil || connection.Config != config {
		t.Errorf("connection %v, error %v", connection.Config, err)
	}
	connection.renew()
	if _, err := newConnection(&rest.Config{Host: "https://a b"}); err == nil {
		t.Error("an address that is none is no error")
	}
}
