// Package layers_test checks which packages import which.
package layers_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/krake-observer/krake-observer/test/check"
)

const module = "github.com/krake-observer/krake-observer/"

// layers are the packages of the product from the bottom up. A package imports only packages of
// lower layers, and its own subpackages. Everything else, such as test, is in no layer: only tests
// may import it. All commands are above the last layer.
var layers = []string{
	"pkg/manifest internal/resync manifests",
	"pkg/schema",
	"internal/apitypes pkg/application internal/blame internal/health pkg/tosca pkg/habitat",
	"pkg/mutate internal/pacing internal/apierror internal/signature",
	"pkg/observer internal/apply internal/status internal/plan internal/pki internal/compose internal/ignored",
	"internal/forecast internal/lens internal/options internal/program internal/supported internal/reach internal/right internal/discovery internal/fetch internal/hooks internal/webhook/limit",
	"pkg/reconcile internal/ui internal/enrol internal/cli/env",
	"internal/cli/apps",
	"internal/cli/draft",
	"internal/cli/view",
	"internal/cli/create internal/cli/inspect internal/cli/pause internal/cli/clusters internal/cli/page",
	"internal/webhook internal/habitat internal/agent internal/agent/connection internal/agent/guard internal/agent/hub internal/agent/sources internal/agent/target internal/agent/telemetry internal/cli",
}

const (
	// pureLayers is how many layers are pure: no context, clock, log, client, network or
	// randomness. The packages of pureAbove are pure as well.
	pureLayers = 4
	pureAbove  = "internal/status internal/plan internal/forecast internal/lens"
	// generic packages know no Application.
	generic     = "pkg/observer internal/apply"
	application = "pkg/application pkg/mutate"
)

var (
	impure = regexp.MustCompile(`^(context|log|log/slog|os|net|net/http|math/rand|math/rand/v2|crypto/rand|github\.com/go-logr/logr|k8s\.io/client-go/.*|sigs\.k8s\.io/controller-runtime(/.*)?)$`)
	// The types of the API have no client.
	types = regexp.MustCompile(`^k8s\.io/client-go/(kubernetes/scheme|applyconfigurations)$`)
	clock = regexp.MustCompile(`\btime\.(Now|Since|Until|After|AfterFunc|Sleep|Tick|NewTimer|NewTicker)\b`)
)

func has(names, name string) bool { return slices.Contains(strings.Fields(names), name) }

// layerOf returns the index of a package's layer, -1 if it is in none.
func layerOf(pkg string) int {
	if strings.HasPrefix(pkg, "cmd/") {
		return len(layers)
	}
	return slices.IndexFunc(layers, func(names string) bool { return has(names, pkg) })
}

func isPure(pkg string) bool { return layerOf(pkg) < pureLayers || has(pureAbove, pkg) }

// objection returns why a package may not import another one, empty if it may.
func objection(pkg, imported string, inTest bool) string {
	target, ours := strings.CutPrefix(imported, module)
	own, other := layerOf(pkg), layerOf(target)
	switch {
	case !inTest && isPure(pkg) && impure.MatchString(imported) && !types.MatchString(imported):
		return "the package is pure"
	case !ours, target == pkg, other < 0 && inTest: // the test of a package imports it
		return ""
	case other < 0:
		return "only tests import packages that are in no layer"
	case other > own, other == own && !strings.HasPrefix(target, pkg+"/"):
		return "only packages of lower layers, and own subpackages"
	case has(generic, pkg) && has(application, target):
		return "the package knows no Application"
	}
	return ""
}

// objections returns why the imports and the clocks of a file are wrong, empty if they may be there.
func objections(pkg, name string, text []byte) (found []string, err error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	inTest := strings.HasSuffix(name, "_test.go")
	for _, spec := range parsed.Imports {
		imported := strings.Trim(spec.Path.Value, `"`)
		if why := objection(pkg, imported, inTest); why != "" {
			found = append(found, "imports "+imported+": "+why)
		}
	}
	if use := clock.Find(text); use != nil && isPure(pkg) && !inTest {
		found = append(found, "uses "+string(use)+": the package is pure")
	}
	return found, nil
}

func TestPackagesImportOnlyLowerLayers(t *testing.T) {
	root, checked := os.DirFS("../.."), 0
	for _, top := range []string{"pkg", "internal", "cmd"} {
		err := fs.WalkDir(root, top, func(name string, _ fs.DirEntry, err error) error {
			pkg := path.Dir(name)
			if err != nil || path.Ext(name) != ".go" || pkg == "internal/layers" || strings.Contains(name, "/testdata/") {
				return err
			}
			if layerOf(pkg) < 0 {
				t.Errorf("%s: give the package a layer", name)
				return nil
			}
			text, err := fs.ReadFile(root, name)
			if err != nil {
				return err
			}
			checked++
			found, err := objections(pkg, name, text)
			for _, why := range found {
				t.Errorf("%s %s", name, why)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	if checked < len(layers) {
		t.Errorf("%d files: this is not the root of the module", checked)
	}
}

func TestObjections(t *testing.T) {
	for _, c := range []struct {
		pkg, imported string
		inTest, want  bool
	}{
		{"pkg/manifest", module + "pkg/schema", true, true},
		{"pkg/observer", module + "internal/apply", false, true},
		{"internal/apply", module + "pkg/application", false, true},
		{"internal/agent/hub", module + "internal/agent", false, true},
		{"internal/agent", module + "internal/agent/hub", false, false},
		{"pkg/mutate", module + "pkg/manifest", false, false},
		{"pkg/reconcile", module + "test/cluster", false, true},
		{"pkg/reconcile", module + "test/cluster", true, false},
		{"pkg/mutate", "context", false, true},
		{"pkg/schema", "context", false, true},
		{"pkg/schema", "context", true, false},
		{"internal/lens", "k8s.io/client-go/dynamic", false, true},
		{"pkg/schema", "k8s.io/client-go/kubernetes/scheme", false, false},
	} {
		check.Equal(t, c.pkg+" may not import "+c.imported, c.want, objection(c.pkg, c.imported, c.inTest) != "")
	}
}
