// Package hooks tests what an Application's text is turned into before and after it
// is carried out, on real API servers: templates and archives, in the Application or
// behind a URL, and the hooks complete and shutdown. There is a hub, which is a
// cluster of its own as well, and one further cluster, east, both installed with the
// shipped manifests of hooks; the agents have the rights that these grant, and no
// others.
//
//	go test -timeout 15m ./test/hooks
//
// No Pod runs. What a program in one would do the tests do, and they know no more
// than it: the variables and files of a container are read as the live Deployment
// refers to them, from the Secrets that are there. The agents are the shipped ones
// but for one thing: Services, which nobody leads anywhere, they reach at an address
// of the test's (see package agent).
//
// When all tests have run, whatever they were about:
//
//   - no token and no key that was in any Secret is found in a log, an Event, a
//     metric or any version of a ConfigMap (see witness);
//   - no agent has asked for Secrets other than by the names of the hooks, nor was
//     refused anything that it asked for about one (the audit logs say).
package hooks
