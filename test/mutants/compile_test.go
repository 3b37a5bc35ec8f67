package main

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/test/check/typed"
	"github.com/krake-observer/krake-observer/test/kit"
)

// A bug that does not compile tests nothing. The type checker tells in seconds, go test in an hour.
func TestEveryMutantCompiles(t *testing.T) {
	byFolder := map[string][]mutant{}
	var folders []string
	for _, list := range [][]byte{list, faults} {
		mutants, err := read(list)
		kit.Must(t, err)
		for _, m := range mutants {
			folder := path.Dir(m.File)
			if byFolder[folder] == nil {
				folders = append(folders, "./"+folder)
			}
			byFolder[folder] = append(byFolder[folder], m)
		}
	}
	packages := typed.Load(t, root, folders...)
	for folder, mutants := range byFolder {
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			for _, m := range mutants {
				text, err := m.changed(root)
				if err == nil {
					err = packages[folder].Check(path.Base(m.File), text)
				}
				if err != nil {
					t.Errorf("%s: %v", m.Name, err)
				}
			}
		})
	}
}

// The check itself can fail.
func TestMutantsThatDoNotCompile(t *testing.T) {
	pkg := typed.Load(t, root, engine)["pkg/schema"]
	const file = "report.go"
	text, err := os.ReadFile(filepath.Join(root, engine, file))
	kit.Must(t, err)
	tests := []struct{ why, text, want string }{
		{"the file as it is", string(text), ""},
		{"no Go", string(text) + "\nfunc", "expected 'IDENT'"},
		{"a name that is not known", string(text) + "\nvar x = y\n", "undefined: y"},
		{"a variable that is not used", string(text) + "\nfunc x() { y := 1 }\n", "declared and not used: y"},
		{"a package that is not used", strings.Replace(string(text), "import (", "import (\n\t\"os\"\n", 1), `"os" imported and not used`},
	}
	for _, test := range tests {
		err := pkg.Check(file, test.text)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: got %v, want %q", test.why, err, test.want)
		}
	}
}
