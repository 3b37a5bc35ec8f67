// Package e2e tests webhook and agent as users have them. They are installed from manifests/ into a real
// cluster (see package cluster for which). The tests change Applications and objects as clients do, and read the audit
// log of the API server.
//
// Each sentence of the documentation about what a user sees on one cluster has a test.
//
// The programs of a local cluster are built once, which takes minutes:
//
//	go run ./test/cluster/run --build-only
//	go test ./test/e2e
package e2e
