package connection

import (
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
	cases := []struct {
		config rest.Config
		want   string
	}{
		{rest.Config{Host: "https://a.example:6443"}, "https://a.example:6443"},
		{rest.Config{Host: "https://a.example/k8s/clusters/c-1"}, "https://a.example/k8s/clusters/c-1"},
		{rest.Config{Host: "a.example", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, "https://a.example"},
		{rest.Config{Host: "127.0.0.1:8080"}, "http://127.0.0.1:8080"},
	}
	for _, c := range cases {
		c.config.BearerTokenFile = "token"
		connection, err := New(&c.config)
		if err != nil || connection.Host != c.want || connection.BearerTokenFile != "token" {
			t.Errorf("%s: %q (%v), with the token of %q", c.config.Host, connection.Host, err, connection.BearerTokenFile)
		}
	}
}
