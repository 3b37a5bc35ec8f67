// Package filter serves an HTTP handler only to clients that the API server allows.
//
// The API server identifies the user of a bearer token (TokenReview), and checks the right of
// that user to the path (SubjectAccessReview), as in
//
//	rules:
//	- nonResourceURLs: [/metrics]
//	  verbs: [get]
//
// It replaces the filter of controller-runtime, which links the machinery of an API server; see
// docs/adr/044-small-programs.md. It knows no other means to log in than bearer tokens.
package filter
