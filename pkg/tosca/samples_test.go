package tosca_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/tosca"
	"github.com/krake-observer/krake-observer/test/check"
)

// The samples of Krake are not part of this repository: the environment names their
// folder.
func TestSamplesOfTheReference(t *testing.T) {
	folder := os.Getenv("KRAKE_TOSCA_SAMPLES")
	if folder == "" {
		t.Skip("KRAKE_TOSCA_SAMPLES names no folder of samples: only our own were tried")
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.expected.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal("no samples", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(file, ".expected.yaml")
		t.Run(filepath.Base(name), func(t *testing.T) {
			want, err := manifest.Decode(read(t, file))
			check.Must(t, err)
			check.Equal(t, "manifests", want, translateSample(t, name))
		})
	}
}

// translateSample translates a template, or an archive.
func translateSample(t *testing.T, name string) []any {
	t.Helper()
	if text, err := os.ReadFile(name + ".template.yaml"); err == nil {
		return translated(t)(tosca.Translate(text))
	}
	return translated(t)(tosca.TranslateArchive(read(t, name+".csar")))
}

func translated(t *testing.T) func([]any, error) []any {
	return func(resources []any, err error) []any {
		t.Helper()
		check.Must(t, err)
		return resources
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	check.Must(t, err)
	return text
}
