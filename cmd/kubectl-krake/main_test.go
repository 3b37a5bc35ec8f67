package main

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// What is mistyped is said before anything is asked of a cluster.
func TestRun(t *testing.T) {
	for _, c := range []struct {
		why, arguments string
		says, err      string // parts of what is said
	}{
		{"the commands", "", "enrol       Make a cluster", ""},
		{"by name", "--help", "remove      Take a cluster", ""},
		{"the flags of one", "enrol --help", "kubectl krake enrol CLUSTER", ""},
		{"a command that there is not", "enroll east", "", `unknown command "enroll"`},
		{"no cluster", "enrol --out x", "", "accepts 1 arg(s)"},
		{"two clusters", "remove east west", "", "accepts 1 arg(s)"},
		{"a flag of the other command", "enrol east --force", "", "unknown flag: --force"},
		{"a flag that cannot be", "enrol east", "", "--out: must name a folder"},
		{"a cluster that cannot be", "remove local", "", "the hub itself"},
		{"a kubeconfig that there is not", "remove east --kubeconfig /nowhere", "", "configure the connection to the hub"},
	} {
		streams, _, out, _ := genericiooptions.NewTestIOStreams()
		command := newCommand(streams)
		command.SetArgs(strings.Fields(c.arguments))
		err := command.ExecuteContext(t.Context())
		if err == nil {
			err = errors.New("")
		}
		if !strings.Contains(out.String(), c.says) || !strings.Contains(err.Error(), c.err) || (c.err == "") != (err.Error() == "") {
			t.Errorf("%s: says %q and fails with %q, want %q and %q", c.why, out.String(), err, c.says, c.err)
		}
	}
}
