package docs

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/test/check"
)

// vague words leave open who acts, or make a reader stop. An error says what was tried.
var vague = regexp.MustCompile(`\b(whoever|whomever|whom|somebody|someone|nobody|anybody|anyone|hardly|scarcely)\b|"failed to `)

// Documentation, manifests, comments, and all text of the product name who acts ("users who", "another client").
func TestVagueWords(t *testing.T) {
	module := os.DirFS("../..")
	check.Must(t, fs.WalkDir(module, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && slices.Contains([]string{".git", "bin", "testdata"}, entry.Name()) {
			return fs.SkipDir
		}
		extension := path.Ext(name)
		if err != nil || !slices.Contains([]string{".go", ".md", ".yaml"}, extension) || strings.HasSuffix(name, "words_test.go") {
			return err
		}
		text, err := fs.ReadFile(module, name)
		isTest := extension == ".go" && (strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "test/"))
		for i, line := range strings.Split(strings.ReplaceAll(strings.ToLower(string(text)), "http.nobody", ""), "\n") {
			if (!isTest || strings.HasPrefix(strings.TrimSpace(line), "//")) && vague.MatchString(line) {
				t.Errorf("%s:%d: name who acts, or say what was tried: %s", name, i+1, line)
			}
		}
		return err
	}))
}
