package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/krake-observer/krake-observer/test/kit"
)

const root = "../../.."

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	kit.Must(t, err)
	return string(text)
}

// The page is up to date with the code.
func TestReferenceIsOfThisCode(t *testing.T) {
	var now strings.Builder
	kit.Must(t, write(&now, root))
	if diff := cmp.Diff(read(t, "docs/reference.md"), now.String()); diff != "" {
		t.Errorf("docs/reference.md is not what the code says: make reference (-written +said):\n%s", diff)
	}
}
