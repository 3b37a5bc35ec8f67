// Package hooks is what the Pods of an Application and its agent say to each
// other: the CA by which they know each other, what the Secrets of the hooks
// hold, the endpoint that the Pods call, and the call that asks a Service of
// theirs to shut down.
//
// A Pod has a token and a URL in its variables, and in files a certificate and
// the CA of the endpoint. With these it says that its work is done:
//
//	PUT /kubernetes/namespaces/demo/applications/web/complete
//	Content-Type: application/json
//
//	{"token": "..."}
//
// The token must be that of this hook of this Application, or the answer is 401;
// and the certificate must be made for them too, or it is 403. A token in the
// query or in a header counts for nothing.
//
// Tokens and keys are made here and go to the target, into Secrets. Nothing else
// that this package gives away has them: no log, no error, no metric; of a token
// that was made, the agent keeps the digest.
//
// The package does not know what completing and shutting down are (see [Actions]),
// nor where an Application is stored (see [Applications]).
package hooks
