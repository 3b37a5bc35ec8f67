package kubectl

import (
	"context"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// varying is what differs each time, and what is read in its place.
var varying = []struct {
	pattern     *regexp.Regexp
	replacement string
}{
	{regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "UID"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| ?[+-]\d{4}\b)?`), "TIME"},
	{regexp.MustCompile(`\bsha256:[0-9a-f]{64}\b`), "sha256:DIGEST"},
	{regexp.MustCompile(`((?:resourceVersion"?|Resource Version): *"?)\d+`), "${1}VERSION"},
	// As in kubectl diff and in what kubectl edit keeps.
	{regexp.MustCompile(`/\S*/(LIVE|MERGED)-\d+/`), "${1}/"},
	{regexp.MustCompile(`/\S*/kubectl-edit-\d+\.yaml`), "kubectl-edit.yaml"},
	// Some versions of kubectl say so, others do not.
	{regexp.MustCompile(`(?m)(" deleted) from \S+ namespace`), "${1}"},
	{regexp.MustCompile(`\bin \d+(\.\d+)?(µs|ms|s)\b`), "in DURATION"},
	// Ages, and the columns behind them, which move with their width.
	{regexp.MustCompile(`(?m) +\b(\d+[smh]|<unknown>)( +\(x\d+ over \d+[smh]\))?\b *`), "  AGE  "},
}

// mask prints a file, or stdout or stderr of the last command, with what varies
// replaced.
func mask(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: mask FILE|stdout|stderr")
	}
	text := ts.ReadFile(args[0])
	for _, v := range varying {
		text = v.pattern.ReplaceAllString(text, v.replacement)
	}
	_, err := io.WriteString(ts.Stdout(), text)
	ts.Check(err)
}

// until repeats a command until what it prints matches: for what the agent does,
// that kubectl wait cannot be told of.
func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until PATTERN COMMAND...")
	}
	pattern, err := regexp.Compile(args[0])
	ts.Check(err)
	ts.Check(await(context.Background(), args[0], func() (bool, error) {
		err := ts.Exec(args[1], args[2:]...)
		return err == nil && pattern.MatchString(ts.ReadFile("stdout")), err
	}))
}

// soon sets a variable to the time in so long, as it is written in annotations:
// whole seconds, never less than was asked for.
func soon(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: soon VARIABLE DURATION")
	}
	wait, err := time.ParseDuration(args[1])
	ts.Check(err)
	ts.Setenv(args[0], time.Now().Add(wait+time.Second).UTC().Format(time.RFC3339))
}

// past fails if a time is still to come: what was to happen then has happened too
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

// bytesOf writes a file with a text of so many bytes in the place of "BYTES" in
// another one: sessions with large files would be no fun to read.
func bytesOf(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: bytes COUNT TEMPLATE FILE")
	}
	count, err := strconv.Atoi(args[0])
	ts.Check(err)
	text := strings.ReplaceAll(ts.ReadFile(args[1]), "BYTES", strings.Repeat("x", count))
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(text), 0o600))
}
