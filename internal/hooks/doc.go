// Package hooks has the communication between the Pods of an Application and its agent.
// It owns the CA by which both identify each other, and the contents of the hooks'
// Secrets. It also has the endpoint that the Pods call, and the call that asks one of
// their Services to shut down.
//
// A Pod has a token and a URL in its variables, and a certificate and the CA of the
// endpoint in files. With these it reports that its work is done:
//
//	PUT /kubernetes/namespaces/demo/applications/web/complete
//	Content-Type: application/json
//
//	{"token": "..."}
//
// Token and certificate must be those of this hook of this Application. All else is one answer,
// 401, also for an Application that does not exist. A token in the query or in a header is ignored.
//
// This package makes tokens and keys, which go into Secrets of the target. No log, error
// or metric has them. The agent stores only the digest of a token.
//
// The package does not know what completing and shutting down are (see [Actions]),
// nor where an Application is stored (see [Applications]).
package hooks
