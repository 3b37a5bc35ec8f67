// Package results keeps what became of trials, as files of JSON lines in a folder:
// each run adds a file, so that runs that were ended add up.
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
	// Seed repeats what was left to chance; 0 if nothing was.
	Seed uint64 `json:"seed,omitempty"`
	// Met: the fault befell something.
	Met bool `json:"met"`
	// Seconds are how long it took.
	Seconds float64 `json:"seconds"`
	// Note is what else there is to tell.
	Note string `json:"note,omitempty"`
	// Violations are of the invariants.
	Violations []string `json:"violations,omitempty"`
}

// Point is what is tried.
type Point struct {
	Block    string `json:"block"`
	Scenario string `json:"scenario"`
	// Mode is what goes wrong, and Place where: call 7, event 3.
	Mode  string `json:"mode"`
	Place string `json:"place,omitempty"`
	// Round: the same point may be tried again, with something else left to chance.
	Round int `json:"round"`
}

// String gives "crash points, shrink: killed before, at call 7 (round 1)".
func (p Point) String() string {
	text := fmt.Sprintf("%s, %s: %s", p.Block, p.Scenario, p.Mode)
	if p.Place != "" {
		text += ", at " + p.Place
	}
	return fmt.Sprintf("%s (round %d)", text, p.Round)
}

// Folder is where the files are.
type Folder struct {
	mu   sync.Mutex
	file *os.File
	done map[Point]bool
}

// Open opens a folder, which is made if need be, for a run that begins now.
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

// Has tells if a point was tried, and all was well.
func (f *Folder) Has(p Point) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.done[p]
}

// Add writes a record down at once.
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

// Close ends the file of this run.
func (f *Folder) Close() error { return f.file.Close() }

// Read gives all records of a folder, the oldest first. The last line of a run that
// was killed may be half a line, and is left out.
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
			return records, nil // half a line is none
		}
		var r Record
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, errors.Join(fmt.Errorf("results: %s, line %d is no record: remove it", path, number), err)
		}
		records = append(records, r)
	}
}

// Row is a block of the table.
type Row struct {
	Block string
	// Trials are those in which the fault befell something; Points are the different
	// ones among them, whatever the round. Violated are the trials after which an
	// invariant did not hold, Mended those of them that were tried again, and it did.
	Trials, Points, Violated, Mended int
	// First and Last are the days of the first and the last.
	First, Last time.Time
	Seconds     float64
}

// Table sums the records up, a row a block.
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

// Unmended gives the records after which an invariant did not hold, and that nobody has
// tried again since without a violation.
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
