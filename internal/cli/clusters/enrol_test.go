package clusters

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/test/check"
)

// A mistyped command is reported before any request to a cluster.
func TestRun(t *testing.T) {
	for _, c := range []struct {
		why, arguments string
		says, err      string // parts of the output
	}{
		{"the commands", "", "enrol       Make a cluster", ""},
		{"by name", "--help", "remove      Take a cluster", ""},
		{"the flags of one", "enrol --help", "kubectl krake enrol CLUSTER", ""},
		{"a command that there is not", "enroll east", "", `unknown command "enroll"`},
		{"no cluster", "enrol --out x", "", "name one cluster: kubectl krake enrol CLUSTER"},
		{"two clusters", "remove east west", "", "name one cluster, and not 2"},
		{"a flag of the other command", "enrol east --force", "", "unknown flag: --force"},
		{"a flag that cannot be", "enrol east", "", "--out: must name a folder"},
		{"a cluster that cannot be", "remove local", "", "the hub itself"},
		{"a kubeconfig that there is not", "remove east --kubeconfig /nowhere", "", "configure the connection to the hub"},
	} {
		streams, _, out, _ := genericiooptions.NewTestIOStreams()
		command := env.NewRoot(streams, Commands)
		command.SetArgs(strings.Fields(c.arguments))
		check.Fails(t, c.why, command.ExecuteContext(t.Context()), c.err)
		if !strings.Contains(out.String(), c.says) {
			t.Errorf("%s: says %q, want %q", c.why, out.String(), c.says)
		}
	}
}

// Enrol and remove act as the user that the flags of kubectl name, as all other commands do.
func TestClusterCommandsActAsTheUser(t *testing.T) {
	for _, arguments := range []string{"enrol east --hub-server https://hub --out " + t.TempDir(), "remove east"} {
		var users []string
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			users = append(users, r.Header.Get("Impersonate-User"))
			w.WriteHeader(http.StatusForbidden)
		}))
		authority := filepath.Join(t.TempDir(), "ca.crt")
		block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		check.Must(t, os.WriteFile(authority, block, 0o600))
		streams, _, _, _ := genericiooptions.NewTestIOStreams()
		command := env.NewRoot(streams, Commands)
		command.SetArgs(append(strings.Fields(arguments), "--kubeconfig", "/dev/null", "--server", server.URL, "--certificate-authority", authority, "--as", "vic"))
		err := command.ExecuteContext(t.Context())
		server.Close()
		if err == nil || len(users) == 0 || slices.ContainsFunc(users, func(user string) bool { return user != "vic" }) {
			t.Errorf("%s: %v: asked as %q", arguments, err, users)
		}
	}
}
