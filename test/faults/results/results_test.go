package results

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/krake-observer/krake-observer/test/kit"
)

func record(place string, round int, met bool, violations ...string) *Record {
	return &Record{
		Date: time.Date(2030, 1, round, 0, 0, 0, 0, time.UTC), Met: met, Seconds: 2, Violations: violations,
		Point: Point{Block: "crash points", Scenario: "shrink", Mode: "killed before", Place: place, Round: round},
	}
}

func open(t *testing.T, folder string, day int) *Folder {
	t.Helper()
	f, err := Open(folder, time.Date(2030, 1, day, 0, 0, 0, 0, time.UTC))
	kit.Must(t, err)
	return f
}

func add(t *testing.T, f *Folder, records ...*Record) {
	t.Helper()
	for _, r := range records {
		kit.Must(t, f.Add(r))
	}
}

// The next run continues after a run that was killed in the middle of a line, and both
// add up.
func TestResumed(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "results")
	first := open(t, folder, 1)
	add(t, first, record("call 1", 1, true), record("call 2", 1, true, "I2: left over"))
	if _, err := first.file.WriteString(`{"date"`); err != nil {
		t.Fatal(err)
	}
	second := open(t, folder, 2)
	if !second.Has(record("call 1", 1, true).Point) || second.Has(record("call 2", 1, true).Point) {
		t.Error("the first run is not known for what it was")
	}
	again := record("call 2", 1, true)
	again.Date = again.Date.AddDate(0, 0, 1)
	add(t, second, again, record("call 3", 2, false), record("call 4", 2, true, "I1: written"))
	records, err := Read(folder)
	kit.Must(t, err)
	if open := Unmended(records); len(open) != 1 || open[0].Place != "call 4" {
		t.Errorf("not mended is %v, want call 4", open)
	}
	want := `| block | trials | different points | with a violation | of these mended | from | to | s a trial |
|---|---:|---:|---:|---:|---|---|---:|
| crash points | 4 | 3 | 2 | 1 | 2030-01-01 | 2030-01-02 | 2.5 |
`
	if diff := cmp.Diff(want, Markdown(Table(records))); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestNoRecord(t *testing.T) {
	folder := t.TempDir()
	kit.Must(t, os.WriteFile(filepath.Join(folder, "a.jsonl"), []byte("[]\n"), 0o600))
	if _, err := Read(folder); err == nil {
		t.Error("a line that is no record is read")
	}
}
