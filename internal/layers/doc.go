// Package layers keeps the order of the packages: each imports only layers below its own,
// and the packages that compute do nothing else. The layers are those of layerOf, from the
// main functions down to the resources and their identity.
//
// The rooms of a package, which are folders below it, may be of its layer. The package
// imports its subpackages, and they import neither it nor each other.
//
// Up to layer 3 packages are pure: their files have no context, clock, log, client, network or
// randomness, except in tests. Everything else in the module, such as what is below test, is
// in no layer, and only tests may import it.
//
// A linter such as depguard has no numbered layers and does not report a package that
// is in none; see docs/adr/042-built-by-hand.md.
//
// [Check] reads the Go files themselves and reports what breaks the order:
//
//	pkg/apply/apply.go:12: imports pkg/application: pkg/apply knows no Application
//	pkg/mutate/desire.go:40: uses time.Now: pkg/mutate is pure
//	pkg/fleet/fleet.go: pkg/fleet is in no layer: give it a layer in internal/layers
package layers
