package layers

import (
	"slices"
	"strings"
)

// layer is the place of a package in the order: it imports layers below its own.
type layer int

// pureUpTo is the highest layer whose packages are pure.
const pureUpTo layer = 3

// isPureAbove reports whether a package of a higher layer is pure as well.
func isPureAbove(path string) bool {
	return path == "pkg/status" || path == "pkg/plan" || path == "pkg/forecast" || path == "internal/lens"
}

// layerOf returns the layer of a package, by its path in the module.
func layerOf(path string) (layer, bool) {
	switch path {
	case "pkg/manifest", "pkg/resync", "manifests": // the latter are embedded files, which import nothing
		return 0, true
	case "pkg/schema":
		return 1, true
	case "pkg/apitypes", "pkg/application", "pkg/blame", "pkg/health", "pkg/tosca", "pkg/habitat":
		return 2, true
	case "pkg/mutate", "pkg/pacing", "pkg/apierror":
		return 3, true
	case "pkg/observer", "pkg/apply", "pkg/status", "pkg/plan", "internal/events", "internal/filter", "internal/compose", "internal/ignored":
		return 4, true
	case "pkg/forecast", "internal/lens", "internal/options", "internal/supported", "internal/reach", "internal/certificates", "internal/right", "internal/discovery", "internal/fetch", "internal/hooks", "internal/habitat", "internal/webhook/limit":
		return 5, true
	case "pkg/reconcile", "internal/ui": // the tests of the loop compare it with the forecast
		return 6, true
	case "internal/webhook", "internal/agent", "internal/agent/connection", "internal/agent/guard", "internal/agent/hub", "internal/agent/sources", "internal/agent/target", "internal/agent/telemetry",
		"internal/cli", "internal/enrol":
		return 7, true
	}
	return 8, strings.HasPrefix(path, "cmd/")
}

// isRoomOf reports whether a package is a room of another one.
func isRoomOf(room, house string) bool { return strings.HasPrefix(room, house+"/") }

// needsLayer reports whether a package belongs to the product. This one does not.
func needsLayer(path string) bool {
	top, _, _ := strings.Cut(path, "/")
	return path != "internal/layers" && slices.Contains([]string{"pkg", "internal", "cmd"}, top)
}

// knowsNoApplication reports whether a package serves other owners as well.
func knowsNoApplication(path string) bool { return path == "pkg/observer" || path == "pkg/apply" }

// isApplication reports whether a package is about Applications.
func isApplication(path string) bool { return path == "pkg/application" || path == "pkg/mutate" }

// isImpure reports whether no pure package may import this one.
func isImpure(path string) bool {
	switch path {
	case "context", "log", "log/slog", "os", "net", "net/http", "math/rand", "math/rand/v2", "crypto/rand",
		"github.com/go-logr/logr":
		return true
	case "k8s.io/client-go/kubernetes/scheme", "k8s.io/client-go/applyconfigurations": // the types of the API, without a client
		return false
	}
	path += "/"
	return strings.HasPrefix(path, "k8s.io/client-go/") || strings.HasPrefix(path, "sigs.k8s.io/controller-runtime/")
}

// isClock reports whether a function of package time depends on when it is called.
func isClock(name string) bool {
	return slices.Contains([]string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker"}, name)
}
