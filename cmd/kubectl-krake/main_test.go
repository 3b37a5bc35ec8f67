package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// What is mistyped is said before anything is asked of a cluster.
func TestRun(t *testing.T) {
	for _, c := range []struct {
		why, arguments string
		says, err      string // parts of what is said
	}{
		{"the commands", "", "kubectl krake enrol CLUSTER", ""},
		{"by name", "--help", "kubectl krake remove CLUSTER", ""},
		{"the flags of one", "enrol --help", "--token-duration", pflag.ErrHelp.Error()},
		{"a command that there is not", "enroll east", "", `unknown command "enroll"`},
		{"no cluster", "enrol --out x", "", "exactly one CLUSTER"},
		{"two clusters", "remove east west", "", "exactly one CLUSTER"},
		{"a flag of the other command", "enrol east --force", "", "unknown flag: --force"},
		{"a flag that cannot be", "enrol east", "", "--out: must name a folder"},
		{"a cluster that cannot be", "remove local", "", "the hub itself"},
		{"a kubeconfig that there is not", "remove east --kubeconfig /nowhere", "", "configure the connection to the hub"},
	} {
		var out strings.Builder
		err := run(t.Context(), strings.Fields(c.arguments), &out)
		if err == nil {
			err = errors.New("")
		}
		if !strings.Contains(out.String(), c.says) || !strings.Contains(err.Error(), c.err) || (c.err == "") != (err.Error() == "") {
			t.Errorf("%s: says %q and fails with %q, want %q and %q", c.why, out.String(), err, c.says, c.err)
		}
	}
}
