package cli

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"

	"github.com/krake-observer/krake-observer/test/check"
)

var update = flag.Bool("update", false, "write what the commands print into testdata, for the author to read in the diff")

// golden compares the output of a command with the text of a file. The command must not warn.
func (h *hub) golden(t *testing.T, name string, command func(*environment) *cobra.Command, arguments ...string) {
	t.Helper()
	out, errOut, err := run(t, h, command, arguments...)
	check.Must(t, err)
	check.Equal(t, name+": warnings", "", errOut)
	golden(t, name, out)
}

// folder is that of the package: some commands run in another one.
var folder = func() string {
	path, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	return path
}()

// golden compares a text with the text of a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join(folder, "testdata", name)
	if *update {
		check.Must(t, os.WriteFile(path, []byte(got), 0o600))
		return
	}
	want, err := os.ReadFile(path)
	check.Must(t, err)
	check.Equal(t, path, string(want), got)
}
