// Package session has the parts of user sessions with kubectl: the commands of their
// scripts in addition to those of testscript, and a kubeconfig for the user.
//
// The commands are
//
//	mask FILE
//	table FILE
//	until PATTERN COMMAND...
//	soon VARIABLE DURATION
//	past TIME
//	bytes COUNT TEMPLATE FILE
//
// mask prints a file, or stdout or stderr of the last command. It replaces what differs
// each time (UIDs, times, versions, temporary files) by its name. table does so with
// tables. It also masks ages and addresses, and leaves two blanks between columns.
// until repeats a command until its output matches. soon sets a variable to a time in
// the future, and past fails if a time is still in the future. bytes writes a file with
// a text of this many bytes in place of the word BYTES in another one.
package session

import (
	"context"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/krake-observer/krake-observer/test/kit"
)

// Command is a command of a script.
type Command = func(script *testscript.TestScript, neg bool, args []string)

// Run runs scripts, which setup prepares, with the commands of sessions and some more.
// With update, it writes the actual output into them.
func Run(t *testing.T, files []string, update bool, setup func(*testscript.Env) error, more map[string]Command) {
	t.Helper()
	commands := commands(t.Context())
	maps.Copy(commands, more)
	testscript.Run(t, testscript.Params{
		Files: files, RequireUniqueNames: true, RequireExplicitExec: true, UpdateScripts: update, Setup: setup, Cmds: commands,
	})
}

// commands returns the commands of sessions. None waits longer than ctx.
func commands(ctx context.Context) map[string]Command {
	return map[string]Command{
		"mask":  masker("mask", varying),
		"table": masker("table", slices.Concat(varying, varyingInTables)),
		"until": until(ctx),
		"soon":  soon,
		"past":  past,
		"bytes": bytesOf,
	}
}

type replacement struct {
	pattern *regexp.Regexp
	by      string
}

// varying has the texts that differ each time, with their replacements.
var varying = []replacement{
	{regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "UID"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| ?[+-]\d{4}\b)?`), "TIME"},
	{regexp.MustCompile(`\bsha256:[0-9a-f]{64}\b`), "sha256:DIGEST"},
	{regexp.MustCompile(`\b[0-9a-f]{16}\.[\w-]{86}`), "SIGNATURE"},
	{regexp.MustCompile(`((?:resourceVersion"?|Resource Version): *"?)\d+`), "${1}VERSION"},
	// As in kubectl diff, and in the files that kubectl edit leaves.
	{regexp.MustCompile(`/\S*/(LIVE|MERGED)-\d+/`), "${1}/"},
	{regexp.MustCompile(`/\S*/kubectl-edit-\d+\.yaml`), "kubectl-edit.yaml"},
	// Only some versions of kubectl print this.
	{regexp.MustCompile(`(?m)(" deleted) from \S+ namespace`), "${1}"},
	{regexp.MustCompile(`\bin \d+(\.\d+)?(µs|ms|s)\b`), "in DURATION"},
	// Ages, and the columns after them, which move with their width.
	{regexp.MustCompile(`(?m) +\b((?:\d+[smh]){1,2}|<unknown>)( +\(x\d+ over \d+[smh]\))?\b *`), "  AGE  "},
}

// varyingInTables has the texts in tables that differ each time, and move the columns.
var varyingInTables = []replacement{
	{regexp.MustCompile(`\b(\d+[dhms]){1,2}\b`), "AGE"},
	{regexp.MustCompile(`\b10(\.\d+){3}\b`), "ADDRESS"},
	{regexp.MustCompile(`(\S) {2,}`), "${1}  "},
	{regexp.MustCompile(`(?m) +$`), ""},
}

// masker makes a command that prints a file, or stdout or stderr of the last command,
// with what varies replaced.
func masker(name string, replacements []replacement) Command {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) != 1 {
			ts.Fatalf("usage: %s FILE|stdout|stderr", name)
		}
		_, err := io.WriteString(ts.Stdout(), masked(ts.ReadFile(args[0]), replacements))
		ts.Check(err)
	}
}

// Table returns a text with the replacements of the command table.
func Table(text string) string { return masked(text, slices.Concat(varying, varyingInTables)) }

func masked(text string, replacements []replacement) string {
	for _, r := range replacements {
		text = r.pattern.ReplaceAllString(text, r.by)
	}
	return text
}

// untilPause is the pause before a command is repeated, beside those of [kit.Wait]: to start kubectl takes a third of a
// second of a processor.
const untilPause = 200 * time.Millisecond

// until repeats a command until its output matches: for changes by the agent that
// kubectl wait does not support.
func until(ctx context.Context) Command {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) < 2 {
			ts.Fatalf("usage: until PATTERN COMMAND...")
		}
		pattern, err := regexp.Compile(args[0])
		ts.Check(err)
		ts.Check(kit.Wait(ctx, args[0], func() (bool, error) {
			if err := ts.Exec(args[1], args[2:]...); err != nil {
				return false, err
			}
			if pattern.MatchString(ts.ReadFile("stdout")) {
				return true, nil
			}
			time.Sleep(untilPause)
			return false, nil
		}))
	}
}

// soon sets a variable to a time in the future, in the form of annotations: whole
// seconds, rounded up.
func soon(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: soon VARIABLE DURATION")
	}
	wait, err := time.ParseDuration(args[1])
	ts.Check(err)
	ts.Setenv(args[0], time.Now().Add(wait+time.Second).UTC().Format(time.RFC3339))
}

// past fails if a time is still in the future: the expected event has then happened too
// early.
func past(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: past TIME")
	}
	at, err := time.Parse(time.RFC3339, args[0])
	ts.Check(err)
	if wait := time.Until(at); wait > 0 {
		ts.Fatalf("%s is %s ahead", args[0], wait.Round(time.Millisecond))
	}
}

// bytesOf writes a file with a text of this many bytes in place of "BYTES" in another
// one, so that sessions stay readable.
func bytesOf(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: bytes COUNT TEMPLATE FILE")
	}
	count, err := strconv.Atoi(args[0])
	ts.Check(err)
	text := strings.ReplaceAll(ts.ReadFile(args[1]), "BYTES", strings.Repeat("x", count))
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(text), 0o600))
}
