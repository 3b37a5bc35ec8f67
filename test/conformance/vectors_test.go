package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/test/kit"
)

// own are the project's own vectors.
const own = "../../conformance"

func vectorFiles(t *testing.T) []file {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(own, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	var files []file
	for _, path := range paths {
		vectors, err := read(path)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if name := strings.TrimSuffix(filepath.Base(path), ".json"); vectors.Function != name {
			t.Errorf("%s holds the function %q", path, vectors.Function)
		}
		files = append(files, vectors)
	}
	if len(files) != len(functions)+1 {
		t.Errorf("%d files for %d functions and the scenarios", len(files), len(functions))
	}
	return files
}

func TestVectors(t *testing.T) {
	for _, vectors := range vectorFiles(t) {
		t.Run(vectors.Function, func(t *testing.T) {
			known := map[string]bool{}
			for _, c := range vectors.Cases {
				if known[c.ID] {
					t.Errorf("two cases %s", c.ID)
				}
				known[c.ID] = true
				t.Run(c.ID, func(t *testing.T) { testVector(t, vectors.Function, c) })
			}
		})
	}
}

func testVector(t *testing.T, function string, c testCase) {
	if c.ID == "" || !strings.HasSuffix(c.Why, ".") {
		t.Errorf("a case has an id and a sentence why it is there, not %q", c.Why)
	}
	for _, semantic := range []bool{false, true} {
		r := runner{engine: ours{functions: functions, semantic: semantic}, semantic: semantic}
		if r.skips(c) {
			continue
		}
		diff, err := r.check(function, c)
		kit.Must(t, err)
		if diff != "" {
			t.Errorf("%s\nsemantic: %t, -want +got\n%s", c.Why, semantic, diff)
		}
	}
}
