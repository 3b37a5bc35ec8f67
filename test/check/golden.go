package check

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// Golden runs a test for each YAML file of a pattern, which has a case with its
// results. For a case without results, run also returns them as YAML. They are appended
// to the file if KRAKE_WRITE_GOLDEN is yes.
func Golden[C any](t *testing.T, pattern string, least int, run func(t *testing.T, want C) (got C, missing string)) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	Must(t, err)
	if len(paths) < least {
		t.Fatalf("there are only %d cases", len(paths))
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			Must(t, err)
			var want C
			Must(t, yaml.UnmarshalStrict(text, &want))
			got, missing := run(t, want)
			if missing != "" && os.Getenv("KRAKE_WRITE_GOLDEN") == "yes" {
				Must(t, os.WriteFile(path, append(text, missing...), 0o600))
				return
			}
			Equal(t, "case", want, got)
		})
	}
}

// Indented returns a text as the lines of a literal block of YAML.
func Indented(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n"
}
