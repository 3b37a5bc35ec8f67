// Package e2e tests webhook and agent as users have them: installed from
// manifests/ into a real cluster (see package cluster for which), driven by
// kubectl, and watched in the audit log of the API server.
//
// There is one test for each sentence of the specification that a user can see,
// and one for each row of the threat model that needs all of this: TestForgedInventoryDeletesNothing and
// so on.
//
// The programs that a local cluster needs are built once, which takes minutes:
//
//	go run ./test/cluster/run --build-only
//	go test ./test/e2e
package e2e
