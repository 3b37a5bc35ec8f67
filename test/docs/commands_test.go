package docs

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/krake-observer/krake-observer/test/kit"
)

// root is the checkout.
var root = filepath.Join("..", "..")

// entry names what runs commands that are not word for word in a script.
type entry struct {
	// command is the command, with * for a word or for the rest of one.
	command string
	// test is the test that runs it, as PACKAGE.TEST; or by is a file with the same
	// command, as FILE: TEXT; or reason is why nothing runs it.
	test, by, reason string
}

// table has the commands that are in no script exactly as in the documentation. Each
// entry is about an existing command, and names existing tests and files.
var table = []entry{
	{command: "kubectl apply -k manifests/*", test: "test/journeys.TestInstallCommands"},
	{command: "kubectl apply --namespace team-a -k manifests/*", test: "test/journeys.TestInstallCommands"},
	{command: "go install ./cmd/kubectl-krake", test: "test/docs.TestThePluginIsInstalled"},
	{command: "make test", by: ".ci/run: make test"},
	{command: "make verify", by: ".ci/run: make verify"},
	{command: "go test ./test/e2e", by: "Makefile: go test -timeout 40m -count=1 -v ./test/e2e"},
	{command: "go run ./test/gate commit ./test/e2e ./pkg/apply", by: "Makefile: go run ./test/gate commit", reason: "make test runs all packages"},
	{command: "make lint", by: ".ci/run: make lint"},
	{command: ".ci/run", reason: "it is what runs all of this"},
	{command: "make demo", by: "Makefile: go run ./test/demo", reason: "test/e2e asserts what it shows"},
	{command: "make images", by: "Makefile: go -C images run . --out ../bin", reason: "the module images has tests of what it makes"},
	{command: "make install.yaml *", test: "manifests/render.TestImage", by: "Makefile: go run ./manifests/render"},
	{command: "E2E_TIER=kind make e2e", test: "test/cluster.TestKind", reason: "it takes Docker and kind: the test has stand-ins for both"},
	{command: "KRAKE_E2E_KUBECONFIG=admin.kubeconfig KRAKE_E2E_IMAGE=docker.io/krake-observer/krake-observer:latest make e2e", reason: "it takes a cluster with nodes"},
	{command: "ctr --namespace k8s.io images import bin/krake-observer.oci.tar", reason: "it takes a node with containerd; the module images tests the archive"},
	{command: "kind create cluster", reason: "it takes Docker: what follows it is run on a cluster without"},
	{command: "kind load docker-image krake-observer/krake-observer", reason: "it takes Docker: what follows it is run on a cluster without"},
	{command: "go run ./test/cluster/run", by: "Makefile: go run ./test/cluster/run --build-only", reason: "without that flag it waits for Ctrl-C"},
	{command: "make build", by: "Makefile: go build -trimpath -ldflags \"-s -w\" -o bin/ ./cmd/...", reason: "test/installation builds the same commands"},
	{command: "make bench*", by: "Makefile: bin/load $(ARGS)", reason: "it takes minutes to hours: the module test/bench runs the smallest of it"},
	{command: "go -C test/bench test ./...", test: "test/bench/load.TestQuick", reason: "a module of its own, with others' engines: minutes to build"},
	{command: "go -C test/gitops test ./...", by: "Makefile: go -C test/gitops test -timeout 10m -count=1 ./..."},
	{command: "go -C test/ui test ./...", by: "Makefile: go -C test/ui test -timeout 10m -count=1 ./..."},
	{command: "kubectl krake ui*", by: "test/ui/main_test.go: []string{\"ui\", \"--no-browser\"", reason: "it takes a browser: the module test/ui starts it with the same flags"},
	{command: "go test ./pkg/schema -run xxx -fuzz *", test: "pkg/schema.FuzzPatch", reason: "each test runs the seeds; for how long more is tried is up to people"},
	{command: "go test -timeout 30m ./test/faults", by: "Makefile: -timeout 30m -count=1 ./..."},
	{command: "make faults", reason: "it takes hours; .ci/run has the same tests with a sample of the points"},
	{command: "make faults ROUNDS=4", reason: "it takes hours; .ci/run has the same tests with a sample of the points"},
	{command: "go run ./test/faults/table bin/faults", by: "Makefile: go run ./test/faults/table bin/faults"},
	{command: "go run ./test/mutants --faults", test: "test/mutants.TestTheListsFitTheCode", reason: "it takes an hour: the test looks whether the bugs can be planted"},
	{command: "helm template shop ./chart *", by: "test/journeys/from-manifests.txtar: exec kubectl krake create shop -f - --skip-unsupported", reason: "it takes Helm: the journey has its output"},
	{command: "make chart *", test: "manifests/render.TestChart", by: "Makefile: go run ./manifests/render --chart bin/chart"},
	{command: "helm install krake bin/chart --set overlay=default", by: "images/chart_test.go: func TestChartIsItsOverlays", reason: "it takes Helm: the module images renders the chart by Helm's engine"},
	{command: "curl --cacert /etc/krake_complete_certs/ca-bundle.pem *", test: "test/hooks.TestComplete", reason: "in a Pod: the test calls with the same certificates, without curl"},
}

// A test runs each documented command unchanged. The table has the commands that cannot
// run, with the reason.
func TestEveryCommandIsRun(t *testing.T) {
	scripted := scripts(t)
	used := make([]bool, len(table))
	count := 0
	for _, page := range pages(t) {
		commands, err := page.Commands()
		if err != nil {
			t.Error(err)
		}
		for _, command := range commands {
			count++
			at := slices.IndexFunc(table, func(e entry) bool { return e.matches(command) })
			if at >= 0 {
				used[at] = true
			}
			// test/journeys.TestQuickStart runs these from the page itself.
			played := filepath.Base(page.Path) == "quick-start.md" && (command.Words[0] == "kubectl" || command.Words[0] == "sed")
			if at < 0 && !played && !scripted[command.String()] {
				t.Errorf("%s:%d: no script runs %q: write one below test/journeys/docs, or say in the table of this test what runs it", page.Path, command.Line, command)
			}
		}
	}
	if count < 60 {
		t.Errorf("%d commands are too few: the documentation has more", count)
	}
	for i, e := range table {
		if !used[i] {
			t.Errorf("the table has %q, which is in no page", e.command)
		}
		e.check(t)
	}
}

// matches reports whether the entry is about a command.
func (e entry) matches(command Command) bool {
	pattern := regexp.QuoteMeta(e.command)
	pattern = strings.ReplaceAll(pattern, `\*`, ".*")
	return regexp.MustCompile("^" + pattern + "$").MatchString(command.String())
}

// check fails if an entry names something that does not exist.
func (e entry) check(t *testing.T) {
	t.Helper()
	if e.test+e.by+e.reason == "" {
		t.Errorf("the table does not say what runs %q", e.command)
	}
	if e.test != "" {
		folder, name, _ := strings.Cut(e.test, ".")
		files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
		kit.Must(t, err)
		if !slices.ContainsFunc(files, func(file string) bool { return has(t, file, "\nfunc "+name+"(") }) {
			t.Errorf("%s, which is to run %q, is not there", e.test, e.command)
		}
	}
	if file, text, ok := strings.Cut(e.by, ": "); ok && !has(t, filepath.Join(root, file), text) {
		t.Errorf("%s, which is to run %q, has no %q", file, e.command, text)
	}
}

func has(t *testing.T, file, text string) bool {
	t.Helper()
	content, err := os.ReadFile(file)
	kit.Must(t, err)
	return strings.Contains(string(content), text)
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
	if len(all) < 10 {
		t.Fatalf("%d pages are too few", len(all))
	}
	return all
}

// The documentation's command builds the plugin.
func TestThePluginIsInstalled(t *testing.T) {
	kit.Long(t, "it links the plugin")
	bin := t.TempDir()
	install := exec.CommandContext(t.Context(), "go", "install", "./cmd/kubectl-krake")
	install.Dir = root
	install.Env = append(os.Environ(), "GOBIN="+bin)
	if text, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if text, err := exec.CommandContext(t.Context(), filepath.Join(bin, "kubectl-krake"), "--help").CombinedOutput(); err != nil || !strings.Contains(string(text), "kubectl krake") {
		t.Errorf("%v\n%s", err, text)
	}
}
