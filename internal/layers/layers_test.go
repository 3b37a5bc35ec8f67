package layers_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/internal/layers"
	"github.com/krake-observer/krake-observer/test/check"
)

const module = "github.com/krake-observer/krake-observer"

func TestTheOrderIsKept(t *testing.T) {
	violations, err := layers.Check("../..", module)
	check.Must(t, err)
	for _, violation := range violations {
		t.Error(violation)
	}
}

// A checker of the wrong folder would find nothing, too.
func TestTheModuleIsWhereItIsLookedFor(t *testing.T) {
	text, err := os.ReadFile("../../go.mod")
	check.Must(t, err)
	first, _, _ := strings.Cut(string(text), "\n")
	check.Equal(t, "first line", "module "+module, first)
}

func TestCheckReports(t *testing.T) {
	tests := []struct{ why, file, source, want string }{
		{
			"an import upwards", "pkg/manifest/a.go", `import "example.org/m/pkg/schema"`,
			"pkg/manifest/a.go:3: imports pkg/schema of layer 1: pkg/manifest, of layer 0, imports only layers below its own",
		},
		{
			"a room that imports its house", "internal/agent/hub/a.go", `import "example.org/m/internal/agent"`,
			"internal/agent/hub/a.go:3: imports internal/agent of layer 7: internal/agent/hub, of layer 7, imports only layers below its own",
		},
		{
			"a room that imports another one", "internal/agent/hub/a.go", `import "example.org/m/internal/agent/target"`,
			"internal/agent/hub/a.go:3: imports internal/agent/target of layer 7: internal/agent/hub, of layer 7, imports only layers below its own",
		},
		{
			"an import of a neighbour", "pkg/observer/a.go", `import _ "example.org/m/pkg/apply"`,
			"pkg/observer/a.go:3: imports pkg/apply of layer 4: pkg/observer, of layer 4, imports only layers below its own",
		},
		{
			"a test may not import upwards either", "pkg/schema/a_test.go", `import "example.org/m/pkg/mutate"`,
			"pkg/schema/a_test.go:3: imports pkg/mutate of layer 3: pkg/schema, of layer 1, imports only layers below its own",
		},
		{
			"a main is above all", "internal/agent/a.go", `import "example.org/m/cmd/agent"`,
			"internal/agent/a.go:3: imports cmd/agent of layer 8: internal/agent, of layer 7, imports only layers below its own",
		},
		{
			"what serves other owners as well", "pkg/apply/a.go", `import "example.org/m/pkg/application"`,
			"pkg/apply/a.go:3: imports pkg/application: pkg/apply knows no Application",
		},
		{
			"so does the observer", "pkg/observer/a.go", `import "example.org/m/pkg/mutate"`,
			"pkg/observer/a.go:3: imports pkg/mutate: pkg/observer knows no Application",
		},
		{
			"what is in no layer", "pkg/reconcile/a.go", `import "example.org/m/test/cluster"`,
			"pkg/reconcile/a.go:3: imports test/cluster, which is in no layer: only tests may",
		},
		{
			"this package", "cmd/agent/a_test.go", `import "example.org/m/internal/layers"`,
			"cmd/agent/a_test.go:3: imports internal/layers, which is in no layer: no package may",
		},
		{
			"a package that nobody gave a layer", "pkg/fleet/a.go", "",
			"pkg/fleet/a.go: pkg/fleet is in no layer: give it a layer in internal/layers",
		},
		{
			"and whoever imports it", "cmd/agent/a.go", `import "example.org/m/internal/fleet"`,
			"cmd/agent/a.go:3: imports internal/fleet, which is in no layer: give it a layer in internal/layers",
		},
		{
			"a folder below a package is another package", "pkg/schema/inner/a.go", "",
			"pkg/schema/inner/a.go: pkg/schema/inner is in no layer: give it a layer in internal/layers",
		},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			expect(t, test.file, test.source, test.want)
		})
	}
}

func TestCheckReportsWhatIsNotPure(t *testing.T) {
	tests := []struct{ why, source, want string }{
		{"a context", `import "context"`, "3: imports context: pkg/mutate is pure"},
		{"a log", `import l "log/slog"`, "3: imports log/slog: pkg/mutate is pure"},
		{"a client", `import "k8s.io/client-go/dynamic"`, "3: imports k8s.io/client-go/dynamic: pkg/mutate is pure"},
		{"controller-runtime", `import "sigs.k8s.io/controller-runtime"`, "3: imports sigs.k8s.io/controller-runtime: pkg/mutate is pure"},
		{"a file system", `import . "os"`, "3: imports os: pkg/mutate is pure"},
		{"randomness", `import "math/rand/v2"`, "3: imports math/rand/v2: pkg/mutate is pure"},
		{"the time of day", "import \"time\"\n\nvar now = time.Now()", "5: uses time.Now: pkg/mutate is pure"},
		{"a clock by another name", "import clock \"time\"\n\nfunc f() { clock.Sleep(clock.Second) }", "5: uses time.Sleep: pkg/mutate is pure"},
		{"a clock that is handed on", "import \"time\"\n\nvar now = time.Now", "5: uses time.Now: pkg/mutate is pure"},
		{"a clock that cannot be seen", `import . "time"`, "1: imports time without a name: pkg/mutate is pure, and its clock could not be seen"},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) {
			expect(t, "pkg/mutate/a.go", test.source, "pkg/mutate/a.go:"+test.want)
		})
	}
}

func TestCheckAllows(t *testing.T) {
	tests := []struct{ why, file, source string }{
		{"an import downwards", "pkg/mutate/a.go", `import "example.org/m/pkg/manifest"`},
		{"the types of the API without a client", "pkg/schema/a.go", `import "k8s.io/client-go/kubernetes/scheme"`},
		{"a length of time", "pkg/mutate/a.go", "import \"time\"\n\nconst d = 3 * time.Second"},
		{"a field that is called as a clock is", "pkg/mutate/a.go", "type a struct{ Now int }\n\nfunc f(time a) int { return time.Now }"},
		{"a package of that name that is not ours", "pkg/manifest/a.go", `import "example.org/other/pkg/schema"`},
		{"a package imports its rooms", "internal/agent/a.go", `import "example.org/m/internal/agent/hub"`},
		{"the test of a package imports it", "pkg/manifest/a_test.go", `import "example.org/m/pkg/manifest"`},
		{"a test may log, wait and read files", "pkg/manifest/a_test.go", "import (\n\"os\"\n\"time\"\n)\n\nvar _, _ = os.Args, time.Now()"},
		{"a test applies what users apply", "pkg/apply/a_test.go", `import "example.org/m/manifests"`},
		{"what is embedded is data", "internal/enrol/a.go", `import "example.org/m/manifests"`},
		{"a test needs a cluster", "pkg/apply/a_test.go", `import "example.org/m/test/cluster"`},
		{"who is not pure may be anything", "pkg/apply/a.go", "import (\n\"context\"\n\"time\"\n)\n\nvar _, _ = context.TODO, time.Now()"},
		{"what is in no layer may import all", "test/e2e/a.go", `import "example.org/m/cmd/agent"`},
		{"so may this package", "internal/layers/a.go", `import "os"`},
		{"what the go command does not see", "pkg/manifest/testdata/a.go", "no Go at all"},
		{"and hidden folders", ".git/a.go", "no Go at all"},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) { expect(t, test.file, test.source) })
	}
}

func TestCheckLeavesModulesWithinTheModuleOut(t *testing.T) {
	root := t.TempDir()
	write(t, root, "go.mod", "module example.org/m\n")
	write(t, root, "pkg/tools/go.mod", "module example.org/m/pkg/tools\n")
	write(t, root, "pkg/tools/a.go", "package tools\n")
	finds(t, root)
}

func TestCheckGivesAllInTheOrderOfTheFiles(t *testing.T) {
	root := t.TempDir()
	write(t, root, "pkg/schema/b.go", "package schema\n\nimport (\n\"os\"\n\"context\"\n)\n")
	write(t, root, "pkg/manifest/a.go", "package manifest\n\nimport \"net/http\"\n")
	finds(t, root,
		"pkg/manifest/a.go:3: imports net/http: pkg/manifest is pure",
		"pkg/schema/b.go:4: imports os: pkg/schema is pure",
		"pkg/schema/b.go:5: imports context: pkg/schema is pure",
	)
}

func TestCheckNeedsGo(t *testing.T) {
	root := t.TempDir()
	write(t, root, "pkg/manifest/a.go", "no Go at all")
	if _, err := layers.Check(root, "example.org/m"); err == nil || !strings.HasPrefix(err.Error(), "parse pkg/manifest/a.go:") {
		t.Errorf("got %v", err)
	}
}

// expect checks a module with one file.
func expect(t *testing.T, file, source string, want ...string) {
	t.Helper()
	root := t.TempDir()
	write(t, root, file, "package a\n\n"+source+"\n")
	finds(t, root, want...)
}

func finds(t *testing.T, root string, want ...string) {
	t.Helper()
	violations, err := layers.Check(root, "example.org/m")
	check.Must(t, err)
	check.Equal(t, "violations", want, violations)
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	path := filepath.Join(root, filepath.FromSlash(name))
	check.Must(t, os.MkdirAll(filepath.Dir(path), 0o750))
	check.Must(t, os.WriteFile(path, []byte(text), 0o600))
}
