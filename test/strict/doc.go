// Package strict tests strict mode: webhook and agent with
// --require-service-account, and the rights of manifests/overlays/strict.
// Whatever is written to the target is written by a service account, and the
// audit log of the API server judges.
//
// Row A6 of the threat model is a sentence on all requests: that no write was the
// agent's own is looked at over the whole run, whatever the tests were about.
package strict
