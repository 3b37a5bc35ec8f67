package layers

import (
	"slices"
	"strings"
)

// layer is what a package may import of its own module: layers below its own.
type layer int

// pureUpTo is the highest layer whose packages are pure.
const pureUpTo layer = 3

// isPureAbove reports whether a package of a higher layer is pure as well.
func isPureAbove(path string) bool { return path == "pkg/status" || path == "pkg/plan" }

// layerOf gives the layer of a package, by its path in the module.
func layerOf(path string) (layer, bool) {
	switch path {
	case "pkg/manifest", "pkg/resync", "pkg/watchjson", "manifests": // the latter are embedded files, which import nothing
		return 0, true
	case "pkg/schema":
		return 1, true
	case "pkg/apitypes", "pkg/application", "pkg/blame", "pkg/health", "pkg/tosca", "pkg/habitat":
		return 2, true
	case "pkg/mutate", "pkg/pacing", "pkg/apierror":
		return 3, true
	case "pkg/observer", "pkg/apply", "pkg/status", "pkg/plan":
		return 4, true
	case "pkg/reconcile", "internal/options", "internal/reach", "internal/certificates", "internal/right", "internal/discovery", "internal/fetch", "internal/hooks", "internal/habitat":
		return 5, true
	case "internal/webhook", "internal/webhook/limit", "internal/agent", "internal/agent/connection", "internal/agent/hub", "internal/agent/sources", "internal/agent/target", "internal/agent/telemetry",
		"internal/cli", "internal/enrol":
		return 6, true
	}
	return 7, strings.HasPrefix(path, "cmd/")
}

// isRoomOf holds for a room of a package of the same layer, which imports its rooms.
func isRoomOf(room, house string) bool { return strings.HasPrefix(room, house+"/") }

// needsLayer tells if the package belongs to the product. This one does not:
// it is imported by nobody.
func needsLayer(path string) bool {
	top, _, _ := strings.Cut(path, "/")
	return path != "internal/layers" && slices.Contains([]string{"pkg", "internal", "cmd"}, top)
}

// knowsNoApplication tells of packages that serve other owners as well.
func knowsNoApplication(path string) bool {
	return path == "pkg/observer" || path == "pkg/apply"
}

// isApplication tells of packages that are about Applications.
func isApplication(path string) bool {
	return path == "pkg/application" || path == "pkg/mutate"
}

// isImpure tells of packages, by their import path, that a pure one does without.
func isImpure(path string) bool {
	switch path {
	case "context", "log", "log/slog", "os", "net", "net/http", "math/rand", "math/rand/v2", "crypto/rand",
		"github.com/go-logr/logr":
		return true
	case "k8s.io/client-go/kubernetes/scheme", "k8s.io/client-go/applyconfigurations": // the types of the API, without a client
		return false
	}
	for _, module := range []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime"} {
		if path == module || strings.HasPrefix(path, module+"/") {
			return true
		}
	}
	return false
}

// isClock tells of the functions of package time that depend on when they are called.
func isClock(name string) bool {
	switch name {
	case "Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker":
		return true
	}
	return false
}
