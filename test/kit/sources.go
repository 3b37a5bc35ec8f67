package kit

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// LookAtSources reads every file of which the commands are built, once. go test reuses
// a cached result unless a file changed that the test has read, and another program
// builds the commands.
func LookAtSources(t testing.TB) {
	t.Helper()
	Must(t, looked())
}

var looked = sync.OnceValue(func() error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	for !isFile(filepath.Join(root, "manifests", "embed.go")) { // a go.mod may be that of a suite
		if root == filepath.Dir(root) {
			return errors.New("look at the sources: no folder above has manifests/embed.go")
		}
		root = filepath.Dir(root)
	}
	var failures []error
	for _, folder := range []string{"cmd", "internal", "manifests", "pkg"} {
		failures = append(failures, filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
			if err == nil {
				_, err = os.Stat(path)
			}
			return err
		}))
	}
	return errors.Join(failures...)
})

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
