package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/krake-observer/krake-observer/test/check"
)

// vague words leave open who acts, or make a reader stop.
var vague = strings.Fields("whoever whomever whom somebody someone nobody anybody anyone hardly scarcely")

// Documentation, manifests, comments, and all text of the product name who acts ("users who", "another client").
// An error says what was tried.
func TestVagueWords(t *testing.T) {
	check.Must(t, filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && slices.Contains([]string{".git", "bin", "testdata"}, entry.Name()) {
			return fs.SkipDir
		}
		extension := filepath.Ext(path)
		if err != nil || extension != ".go" && extension != ".md" && extension != ".yaml" || strings.HasSuffix(path, "words_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		isTest := strings.HasSuffix(path, "_test.go") || extension == ".go" && strings.HasPrefix(path, "../../test/")
		for i, line := range strings.Split(string(text), "\n") {
			words := strings.FieldsFunc(strings.ToLower(line), func(r rune) bool { return !unicode.IsLetter(r) })
			found := slices.ContainsFunc(words, func(word string) bool { return slices.Contains(vague, word) }) && !strings.Contains(line, "http.NoBody")
			if isComment := strings.HasPrefix(strings.TrimSpace(line), "//"); (found || strings.Contains(line, `"failed to `)) && (isComment || !isTest) {
				t.Errorf("%s:%d: name who acts, or say what was tried: %s", path, i+1, line)
			}
		}
		return err
	}))
}
