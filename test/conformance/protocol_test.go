package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/test/kit"
)

// serveVariable makes this test program an implementation of the protocol, with the engine of this
// repository.
const serveVariable = "KRAKE_CONFORMANCE_SERVE"

func TestMain(m *testing.M) {
	if os.Getenv(serveVariable) != "" {
		os.Exit(execute([]string{"--serve"}, os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// The project's own vectors pass, in both modes, also if the engine runs as another program. A failed case
// fails the run, and so does a run that tries nothing.
func TestCommand(t *testing.T) {
	program, err := os.Executable()
	kit.Must(t, err)
	t.Setenv(serveVariable, "yes")
	wrong := filepath.Join(t.TempDir(), "delta.json")
	kit.Must(t, os.WriteFile(wrong, []byte(`{"format": 1, "function": "delta", "cases": [{"id": "wrong", "input": {}, "want": {"new": [7], "modified": [], "deleted": []}}]}`), 0o600))
	for _, c := range []struct {
		arguments []string
		code      int
		want      string
	}{
		{[]string{own}, 0, " 0 failed, 0 skipped  in total"},
		{[]string{"--semantic", own}, 0, " 0 failed, 3 skipped (api-normalisation)  in total"},
		{[]string{"--command", program, own}, 0, " 0 failed, 0 skipped  in total"},
		{[]string{"--command", program, "--semantic", own}, 0, " 0 failed, 3 skipped (api-normalisation)  in total"},
		{[]string{filepath.Dir(wrong)}, 1, "FAIL delta/wrong"},
		{[]string{"--command", "/no/such/program", own}, 2, "start the implementation"},
		{[]string{t.TempDir()}, 2, "no vector files in "},
	} {
		var out, problems strings.Builder
		if code := execute(c.arguments, strings.NewReader(""), &out, &problems); code != c.code || !strings.Contains(out.String()+problems.String(), c.want) {
			t.Errorf("%v: exit code %d, want %d with %q:\n%s%s", c.arguments, code, c.code, c.want, &out, &problems)
		}
	}
}
