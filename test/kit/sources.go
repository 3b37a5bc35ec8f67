package kit

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// lookAtSources looks at every file that the commands are built from, once. go test
// takes a cached result unless a file changed that a test has looked at, and the
// commands are built by another program.
func lookAtSources(t testing.TB) {
	t.Helper()
	Must(t, looked())
}

var looked = sync.OnceValue(func() error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	for !isFile(filepath.Join(root, "go.mod")) {
		if root == filepath.Dir(root) {
			return errors.New("look at the sources: no folder above has a go.mod")
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
