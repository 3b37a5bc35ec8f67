// Package results stores the outcomes of trials in a folder, as files of JSON lines.
// Each run adds a file, so that interrupted runs add up.
package results

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Record is one trial.
type Record struct {
	Date time.Time `json:"date"`
	// Version is that of the sources.
	Version string `json:"version,omitempty"`
	Point
	// Seed repeats the random choices; 0 if there were none.
	Seed uint64 `json:"seed,omitempty"`
	// Met: the fault happened.
	Met bool `json:"met"`
	// Seconds is the duration.
	Seconds float64 `json:"seconds"`
	// Note has further information.
	Note string `json:"note,omitempty"`
	// Violations lists the violated invariants.
	Violations []string `json:"violations,omitempty"`
}

// Point identifies a trial.
type Point struct {
	Block    string `json:"block"`
	Scenario string `json:"scenario"`
	// Mode is the fault, and Place where it happens: call 7, event 3.
	Mode  string `json:"mode"`
	Place string `json:"place,omitempty"`
	// Round numbers repetitions of a point with other random choices.
	Round int `json:"round"`
}

// String returns "crash points, shrink: killed before, at call 7 (round 1)".
func (p Point) String() string {
	text := fmt.Sprintf("%s, %s: %s", p.Block, p.Scenario, p.Mode)
	if p.Place != "" {
		text += ", at " + p.Place
	}
	return fmt.Sprintf("%s (round %d)", text, p.Round)
}

// Folder is the folder with the files.
type Folder struct {
	mu   sync.Mutex
	file *os.File
	done map[Point]bool
}

// Open opens a folder for a run that begins now, and creates the folder if necessary.
func Open(path string, now time.Time) (*Folder, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	former, err := Read(path)
	if err != nil {
		return nil, err
	}
	done := map[Point]bool{}
	for i := range former {
		done[former[i].Point] = len(former[i].Violations) == 0
	}
	name := filepath.Join(path, now.UTC().Format("20060102-150405.000")+".jsonl")
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o644)
	if err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	return &Folder{file: file, done: done}, nil
}

// Has reports whether a point was tried without a violation.
func (f *Folder) Has(p Point) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.done[p]
}

// Add appends a record to the file at once.
func (f *Folder) Add(r *Record) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("results: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done[r.Point] = true
	if _, err := f.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("results: %w", err)
	}
	return nil
}

// Close closes the file of this run.
func (f *Folder) Close() error { return f.file.Close() }

// Read returns all records of a folder, the oldest first. It ignores an incomplete last
// line, which a killed run may leave.
func Read(path string) ([]Record, error) {
	files, err := fs.Glob(os.DirFS(path), "*.jsonl")
	if err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	var records []Record
	for _, name := range files {
		found, err := readFile(filepath.Join(path, name))
		if err != nil {
			return nil, err
		}
		records = append(records, found...)
	}
	slices.SortStableFunc(records, func(a, b Record) int { return a.Date.Compare(b.Date) })
	return records, nil
}

func readFile(path string) ([]Record, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("results: %w", err)
	}
	defer file.Close()
	var records []Record
	lines := bufio.NewReader(file)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return records, nil // an incomplete line is no record
		}
		var r Record
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, errors.Join(fmt.Errorf("results: %s, line %d is no record: remove it", path, number), err)
		}
		records = append(records, r)
	}
}

// Row summarizes a block in the table.
type Row struct {
	Block string
	// Trials counts the trials in which the fault happened; Points counts their points,
	// without the rounds. Violated counts the trials that violated an invariant, and
	// Mended those of them that passed later.
	Trials, Points, Violated, Mended int
	// First and Last are the days of the first and the last trial.
	First, Last time.Time
	Seconds     float64
}

// Table summarizes the records, a row for each block.
func Table(records []Record) []Row {
	rows := map[string]*Row{}
	seen, violated := map[Point]bool{}, map[Point]int{}
	for i := range records {
		r := &records[i]
		row := rows[r.Block]
		if row == nil {
			row = &Row{Block: r.Block, First: r.Date}
			rows[r.Block] = row
		}
		row.Last, row.Seconds = r.Date, row.Seconds+r.Seconds
		if len(r.Violations) > 0 {
			row.Violated++
			violated[r.Point]++
		} else {
			row.Mended += violated[r.Point]
			delete(violated, r.Point)
		}
		if !r.Met {
			continue
		}
		row.Trials++
		point := r.Point
		point.Round = 0
		if !seen[point] {
			seen[point] = true
			row.Points++
		}
	}
	var table []Row
	for _, row := range rows {
		table = append(table, *row)
	}
	slices.SortFunc(table, func(a, b Row) int { return cmp.Compare(a.Block, b.Block) })
	return table
}

// Unmended returns the records with a violation whose point has not passed since.
func Unmended(records []Record) []Record {
	last := map[Point]int{}
	for i := range records {
		last[records[i].Point] = i
	}
	var open []Record
	for i := range records {
		if last[records[i].Point] == i && len(records[i].Violations) > 0 {
			open = append(open, records[i])
		}
	}
	return open
}

// Markdown writes the table.
func Markdown(rows []Row) string {
	var text strings.Builder
	text.WriteString("| block | trials | different points | with a violation | of these mended | from | to | s a trial |\n|---|---:|---:|---:|---:|---|---|---:|\n")
	for _, row := range rows {
		fmt.Fprintf(&text, "| %s | %d | %d | %d | %d | %s | %s | %.1f |\n", row.Block, row.Trials, row.Points, row.Violated, row.Mended,
			row.First.UTC().Format(time.DateOnly), row.Last.UTC().Format(time.DateOnly), row.Seconds/float64(max(1, row.Trials)))
	}
	return text.String()
}
