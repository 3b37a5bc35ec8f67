package connection

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// If a connection stays silent, all clients leave it. Pending requests and new ones are
// answered on another connection.
func TestRenew(t *testing.T) {
	var dead sync.Once
	var deaf string
	asked := make(chan string, 10)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		dead.Do(func() { deaf = r.RemoteAddr })
		if r.RemoteAddr == deaf {
			asked <- r.Header.Get("Authorization")
			<-t.Context().Done() // as on a network that has lost the connection
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	connection, err := New(&rest.Config{
		Host: server.URL, BearerToken: "token", TLSClientConfig: rest.TLSClientConfig{Insecure: true},
	})
	kit.Must(t, err)
	list := func() error {
		client, err := metadata.NewForConfig(connection.Config)
		if err != nil {
			return err
		}
		_, err = client.Resource(kit.Services).List(t.Context(), metav1.ListOptions{})
		return err
	}
	answers := make(chan error, 2)
	for range cap(answers) {
		go func() { answers <- list() }()
		check.Equal(t, "credentials", "Bearer token", <-asked)
	}
	connection.Renew()
	for range cap(answers) {
		select {
		case err := <-answers:
			if !apierrors.IsNotFound(err) {
				t.Errorf("who waited is answered: %v", err)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("who waited is not answered")
		}
	}
	if err := list(); !apierrors.IsNotFound(err) {
		t.Errorf("who asks then is answered: %v", err)
	}
}

// A configuration with a dialer of its own uses that dialer.
func TestConnectionOfTheirOwn(t *testing.T) {
	config := &rest.Config{Host: "https://a.example", Transport: http.DefaultTransport}
	connection, err := New(config)
	if err != nil || connection.Config != config {
		t.Errorf("connection %v, error %v", connection.Config, err)
	}
	connection.Renew()
	if _, err := New(&rest.Config{Host: "https://a b"}); err == nil {
		t.Error("an address that is none is no error")
	}
}

// The address keeps its meaning: whether TLS is used, and the path if it has one.
func TestConnectionAddress(t *testing.T) {
	for _, c := range []struct {
		config rest.Config
		want   string
	}{
		{rest.Config{Host: "https://a.example:6443"}, "https://a.example:6443"},
		{rest.Config{Host: "https://a.example/k8s/clusters/c-1"}, "https://a.example/k8s/clusters/c-1"},
		{rest.Config{Host: "a.example", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, "https://a.example"},
		{rest.Config{Host: "127.0.0.1:8080"}, "http://127.0.0.1:8080"},
	} {
		c.config.BearerTokenFile = "token"
		connection, err := New(&c.config)
		if err != nil || connection.Host != c.want || connection.BearerTokenFile != "token" {
			t.Errorf("%s: %q (%v), with the token of %q", c.config.Host, connection.Host, err, connection.BearerTokenFile)
		}
	}
}

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
