package docs

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/krake-observer/krake-observer/test/kit"
)

// root is the checkout.
var root = filepath.Join("..", "..")

// unscripted are the commands of kubectl that no session runs word for word, with what
// shows that they work.
var unscripted = map[string]string{
	"kubectl apply -k manifests/":                    "test/policies applies each overlay",
	"kubectl apply --namespace team-a -k manifests/": "test/policies applies each overlay",
	"kubectl krake ui":                               "test/ui starts it with the same flags",
}

// A session runs each documented command of kubectl unchanged.
func TestEveryCommandIsRun(t *testing.T) {
	scripted := scripts(t)
	for _, page := range pages(t) {
		if filepath.Base(page.Path) == "quick-start.md" {
			continue // test/kubectl plays it
		}
		commands, err := page.Commands()
		if err != nil {
			t.Error(err)
		}
		for _, command := range commands {
			if command.Words[0] == "kubectl" && !scripted[command.String()] && !isUnscripted(command) {
				t.Errorf("%s:%d: no session runs %q: write one below test/kubectl/testdata/pages", page.Path, command.Line, command)
			}
		}
	}
}

func isUnscripted(command Command) bool {
	for begin := range unscripted {
		if strings.HasPrefix(command.String(), begin) {
			return true
		}
	}
	return false
}

// scripts returns the commands of all scripts, as words with a blank between them.
func scripts(t *testing.T) map[string]bool {
	t.Helper()
	commands := map[string]bool{}
	err := filepath.WalkDir(filepath.Join(root, "test"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".txtar" {
			return err
		}
		archive, err := txtar.ParseFile(path)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(archive.Comment)) {
			if command := scripted(line); command != "" {
				commands[command] = true
			}
		}
		return nil
	})
	kit.Must(t, err)
	return commands
}

// substitutes maps the variables of scripts to the text that users write.
var substitutes = strings.NewReplacer("$INSTALLED", "manifests/overlays/default")

// scripted returns the command that a line of a script runs.
func scripted(line string) string {
	words := scriptWords(strings.TrimSpace(line))
	for len(words) > 0 && (words[0] == "!" || words[0] == "?") {
		words = words[1:]
	}
	switch {
	case len(words) > 1 && words[0] == "exec":
		words = words[1:]
	case len(words) > 2 && words[0] == "until":
		words = words[2:]
	case len(words) == 2 && words[0] == "shell":
		inner, err := Words(words[1])
		if err != nil {
			return ""
		}
		words = inner
	default:
		return ""
	}
	return substitutes.Replace(strings.Join(words, " "))
}

// scriptWords splits a line as testscript does: only single quotes, and two of them for
// one within.
func scriptWords(line string) []string {
	var words splitting
	inQuotes := false
	for i, c := range line {
		switch {
		case c == '\'':
			if i > 0 && line[i-1] == '\'' && !inQuotes {
				words.add("'")
			}
			words.add("")
			inQuotes = !inQuotes
		case c == '#' && !inQuotes && !words.within:
			return words.done
		case (c == ' ' || c == '\t') && !inQuotes:
			words.end()
		default:
			words.add(string(c))
		}
	}
	words.end()
	return words.done
}

// pages returns the pages for users.
func pages(t *testing.T) []*Page {
	t.Helper()
	all, err := ReadAll(root)
	kit.Must(t, err)
	if len(all) == 0 {
		t.Fatal("there are no pages")
	}
	return all
}
