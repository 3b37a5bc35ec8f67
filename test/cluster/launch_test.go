package cluster

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// newTestControlPlane returns a control plane without components, for launch only.
func newTestControlPlane(t *testing.T, log io.Writer) *controlPlane {
	return &controlPlane{
		Cluster: &Cluster{supervisor: newTestSupervisor(t)},
		options: Options{Log: log},
		client:  http.DefaultClient,
	}
}

// serveWhenUp returns the URL of a server that is ready once the file exists.
func serveWhenUp(t *testing.T, file string) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, err := os.Stat(file); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// newFakeComponent is a script that fails a number of times, with the message, and
// counts its starts in a file.
func newFakeComponent(t *testing.T, b *controlPlane, failures int, message string) component {
	count := filepath.Join(b.Dir(), "count")
	text := fmt.Sprintf(`echo >>"$0"; [ $(wc -l <"$0") -gt %d ] || { echo "%s"; exit 1; }; touch "$0.up"; sleep 1000`, failures, message)
	url := serveWhenUp(t, count+".up")
	return component{
		name:   "fake",
		path:   "/bin/sh",
		ports:  2,
		args:   func([]int) []string { return []string{"-c", text, count} },
		health: func([]int) string { return url },
	}
}

// A port that is taken between its choice and its use causes another attempt. Any other
// failure is final, and so are five of these.
func TestLaunchTriesOtherPorts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		failures int
		message  string
		want     string // in the error
	}{
		{"the first port is taken", 1, "listen tcp 127.0.0.1:1: bind: address already in use", ""},
		{"every port is taken", 9, "listen tcp 127.0.0.1:1: bind: address already in use", "fake ended: exit status 1"},
		{"another failure", 1, "bad flag", "bad flag"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var log strings.Builder
			b := newTestControlPlane(t, &log)
			c := newFakeComponent(t, b, test.failures, test.message)
			ports, err := b.launch(t.Context(), c)
			complains(t, err, test.want)
			if err == nil && (len(ports) != 2 || ports[0] == ports[1] || !strings.Contains(log.String(), "a port of fake was taken")) {
				t.Errorf("ports %v, log %q", ports, log.String())
			}
		})
	}
}
