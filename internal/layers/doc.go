// Package layers keeps the order of the packages: each imports only layers
// below its own, and the packages that compute do nothing else.
//
//	7  cmd/...                                          main: options, signals, Run
//	6  internal/webhook, internal/agent, internal/cli   wiring, and its rooms
//	5  pkg/reconcile, internal/right                    the loop, and the right to run it
//	4  pkg/observer, pkg/apply                          watch and write; they know no Application
//	3  pkg/mutate                                       what admission computes
//	2  pkg/application, pkg/tosca, pkg/habitat          the Application, other front ends
//	1  pkg/schema                                       the observer-schema engine
//	0  pkg/manifest                                     resources and their identity
//
// The rooms of a package, which are folders below it, may be of its layer. The
// package imports its rooms, and they import neither it nor each other.
//
// The design counts pkg/schema and pkg/manifest as one layer; within it a
// schema belongs to a resource, so manifest lies below.
//
// Up to layer 3 packages are pure: no context, clock, log, client, network or
// randomness, in whatever is not a test. Everything else in the module, such as
// manifests and what lies below test, is in no layer: only tests may import it.
//
// A linter such as depguard has no numbered layers and does not report a package that
// is in none; see docs/adr/042-built-by-hand.md.
//
// [Check] reads the Go files themselves and says what breaks the order:
//
//	pkg/apply/apply.go:12: imports pkg/application: pkg/apply knows no Application
//	pkg/mutate/desire.go:40: uses time.Now: pkg/mutate is pure
//	pkg/fleet/fleet.go: pkg/fleet is in no layer: give it a layer in internal/layers
package layers
