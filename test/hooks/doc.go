// Package hooks tests how an Application's text is transformed before and after it is
// carried out, on real API servers. It covers templates and archives, in the
// Application or behind a URL, and the hooks complete and shutdown. The hub is also a
// cluster, and there is one more cluster, east. Both are installed with the shipped
// manifests of hooks, and the agents have only the rights of these.
//
//	go test -timeout 15m ./test/hooks
//
// No Pod runs. The tests act as a program in a Pod, with only its knowledge: they read
// the container's variables and files through the references in the live Deployment.
// The agents are the shipped ones except for Services: they reach these at an address
// of the test (see package agent).
//
// After all tests:
//
//   - no log, Event, metric or version of a ConfigMap has a token or key of any Secret
//     (see witness);
//   - the agents have requested only Secrets with the names of hooks, and no such
//     request was refused (the audit logs show it).
package hooks
