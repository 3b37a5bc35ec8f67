package layers_test

import (
	"bufio"
	"bytes"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/test/check"
)

// unwanted is a tree of packages that programs must not link.
type unwanted struct {
	tree     string
	programs []string
	why      string
}

var (
	servers  = []string{"cmd/agent", "cmd/webhook"}
	plugin   = []string{"cmd/kubectl-krake"}
	programs = slices.Concat(servers, plugin)
)

// The figures are those of docs/adr/063-less-to-carry.md.
var unwantedTrees = []unwanted{
	{"k8s.io/apiserver", programs, "the machinery of an API server, with cel-go, gRPC and OpenTelemetry: internal/filter reviews tokens and rights by two typed clients"},
	{"k8s.io/component-base", programs, "the metrics, traces and feature gates of Kubernetes' own servers"},
	{"github.com/google/cel-go", programs, "evaluates expressions, which only API servers do"},
	{"github.com/antlr4-go/antlr", programs, "parses the expressions of cel-go"},
	{"google.golang.org/grpc", programs, "no program speaks gRPC"},
	{"google.golang.org/genproto", programs, "the messages of gRPC services"},
	{"go.opentelemetry.io", programs, "no program sends traces"},
	{"html/template", servers, "calls methods by name: the linker keeps every method of every type that it can reach"},
	{"text/template", servers, "calls methods by name: the linker keeps every method of every type that it can reach"},
	{"github.com/spf13/cobra", servers, "a server has flags and no commands"},
	{"k8s.io/cli-runtime", servers, "the flags and tables of kubectl"},
	{"sigs.k8s.io/kustomize", servers, "renders manifests, and has the OpenAPI document of Kubernetes embedded"},
	{"github.com/open-policy-agent/cert-controller", plugin, "makes certificates for servers of webhooks"},
	{"sigs.k8s.io/controller-runtime", plugin, "runs controllers, and the plugin ends after one answer"},
	{"github.com/prometheus", plugin, "counts for metrics, which the plugin does not serve"},
	{"k8s.io/client-go/informers", plugin, "watches every kind of Kubernetes"},
	{"k8s.io/client-go/kubernetes", plugin, "the clients of every group of Kubernetes: import those of the groups, below typed"},
	{"k8s.io/kubectl", programs, "the commands of kubectl"},
}

// allowedBelow are packages that may be linked although the tree around them may not.
var allowedBelow = map[string][]string{
	"k8s.io/client-go/kubernetes": {"k8s.io/client-go/kubernetes/scheme", "k8s.io/client-go/kubernetes/typed"},
	"k8s.io/component-base":       {"k8s.io/component-base/version"}, // of the rules for the security of Pods
}

// Each linked package costs every user memory and download time.
func TestProgramsLinkNothingUnwanted(t *testing.T) {
	for _, program := range programs {
		t.Run(program, func(t *testing.T) {
			links := linksOf(t, program)
			for _, u := range unwantedTrees {
				if !slices.Contains(u.programs, program) {
					continue
				}
				if path := links.pathTo(u.tree, allowedBelow[u.tree]); path != nil {
					t.Errorf("links %s: %s\n\t%s", u.tree, u.why, strings.Join(path, "\n\timports "))
				}
			}
		})
	}
}

// A list that finds nothing may be one that looks at nothing.
func TestUnwantedLinksAreFound(t *testing.T) {
	l := links{main: "m", imports: map[string][]string{"m": {"m/a", "m/b"}, "m/a": {"x/y", "other"}, "m/b": {"other"}, "other": {"x/y/z", "xx"}, "x/y": {"x/y/z"}}}
	tests := []struct {
		why, tree string
		but       []string
		want      []string
	}{
		{"the shortest path", "x/y", nil, []string{"m", "m/a", "x/y"}},
		{"a package below the tree", "x", nil, []string{"m", "m/a", "x/y"}},
		{"what is allowed below it is passed", "x", []string{"x/y"}, nil},
		{"a package of another name", "x/y/zz", nil, nil},
		{"a package whose name begins alike", "ot", nil, nil},
		{"beyond what is allowed", "x", []string{"x/w"}, []string{"m", "m/a", "x/y"}},
	}
	for _, test := range tests {
		t.Run(test.why, func(t *testing.T) { check.Equal(t, "path", test.want, l.pathTo(test.tree, test.but)) })
	}
}

// links are the packages of a program, each with its imports.
type links struct {
	main    string
	imports map[string][]string
}

func linksOf(t *testing.T, program string) links {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./"+program)
	command.Dir = "../.."
	var problems strings.Builder
	command.Stderr = &problems
	text, err := command.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, problems.String())
	}
	l := links{main: module + "/" + program, imports: map[string][]string{}}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, len(text))
	for lines.Scan() {
		names := strings.Fields(lines.Text())
		l.imports[names[0]] = names[1:]
	}
	check.Must(t, lines.Err())
	if l.imports[l.main] == nil {
		t.Fatalf("%s is not among its own packages", l.main)
	}
	return l
}

// pathTo returns the shortest path of imports into a tree of packages, nil if there is none.
func (l links) pathTo(tree string, allowed []string) []string {
	importer := map[string]string{l.main: ""}
	for queue := []string{l.main}; len(queue) > 0; queue = queue[1:] {
		name := queue[0]
		if isBelow(name, tree) && !slices.ContainsFunc(allowed, func(a string) bool { return isBelow(name, a) }) {
			var path []string
			for ; name != ""; name = importer[name] {
				path = append(path, name)
			}
			slices.Reverse(path)
			return path
		}
		for _, imported := range l.imports[name] {
			if _, known := importer[imported]; !known {
				importer[imported] = name
				queue = append(queue, imported)
			}
		}
	}
	return nil
}

func isBelow(name, tree string) bool { return name == tree || strings.HasPrefix(name, tree+"/") }
