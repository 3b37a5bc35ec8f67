package main

import (
	"fmt"
	"path/filepath"
	"slices"
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

// rules has the number of rules in each section of the specification. 1.6.10 is about
// actions, which no vector tests.
var rules = map[string]int{"1.1": 4, "1.2": 7, "1.3": 6, "1.4": 6, "1.5": 5, "1.6": 9, "1.7": 3, "2": 21}

// beyondVectors are the rules that no pure function can violate.
var beyondVectors = []string{
	"2.18", // ownership of an existing object
}

var codes = []string{
	"manifest-field-missing", "not-an-object", "apiVersion-missing", "kind-missing", "metadata-missing",
	"metadata-not-object", "name-missing", "identity-not-string", "not-in-manifest", "value-not-null",
	"element-not-null", "control-missing", "control-malformed", "min-not-integer", "max-not-integer",
	"min-negative", "max-negative", "max-below-min", "max-below-observed", "min-below-manifest",
	"control-extra-key", "duplicate-schema", "duplicate-resource", "shape-mismatch",
	"key-malformed", "key-missing", "key-duplicate",
}

func TestEveryRuleHasACase(t *testing.T) {
	tagged, found := map[string]bool{}, map[string]bool{}
	for _, vectors := range vectorFiles(t) {
		for _, c := range vectors.Cases {
			for _, tag := range c.Tags {
				tagged[tag] = true
			}
			for _, place := range slices.Concat(findings(c.WantError), findings(c.Want["warnings"])) {
				code, _, _ := strings.Cut(place, " ")
				found[code] = true
			}
		}
	}
	for section, count := range rules {
		for i := range count {
			rule := fmt.Sprintf("%s.%d", section, i+1)
			if tagged[rule] == slices.Contains(beyondVectors, rule) {
				t.Errorf("rule %s: tagged in a case is %t", rule, tagged[rule])
			}
		}
	}
	for _, code := range codes {
		if !found[code] {
			t.Errorf("no case finds %s", code)
		}
	}
}
