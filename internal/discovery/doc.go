// Package discovery finds which kinds a server serves, and where: the resource and the
// scope of the objects of a manifest.
//
// A kind that a server does not serve is an answer, for which meta.IsNoMatchError
// holds. A server, or one group of it, that does not answer is another error:
//
//	apps/v1 Deployment       found: deployments, namespaced
//	example.com/v1 Widget    not served: meta.IsNoMatchError holds
//	example.com/v1 Widget    its API server is down: an error of another kind
//
// [Kinds] and [Guesser] stay apart, because their mistakes cost different things. The
// agent gives up the objects of a kind that is gone, so [Kinds] never guesses: it reads
// all that the target serves at once, notes the groups that did not answer, and follows
// the CustomResourceDefinitions ([Definitions]). Admission has seconds, and names from
// users, so [Guesser] asks for one kind at a time, within a rate and a bounded memory,
// and guesses what only the target may know. They share how long a missing kind is not
// asked for again, and that an object is located by its mapping.
//
// The package knows no Application beyond its name, and does not know what its callers
// do with a kind that is missing.
package discovery

import "time"

// unknownFor is how long a server is not asked again for a kind that it does not serve:
// each question costs it a request at least.
const unknownFor = 10 * time.Second
