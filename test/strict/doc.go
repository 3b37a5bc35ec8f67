// Package strict tests strict mode: webhook and agent with --require-service-account,
// and the rights of manifests/overlays/strict. A service account makes every write to
// the target, and the audit log of the API server proves it.
//
// The check that no write was the agent's own covers the whole run, with all tests.
package strict
