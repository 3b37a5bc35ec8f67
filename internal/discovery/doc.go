// Package discovery finds which kinds a server serves, and where: the resource and the scope of the objects of a
// manifest.
//
// For a kind that a server does not serve, meta.IsNoMatchError holds. A server, or one of its groups, that does not
// answer is another error:
//
//	apps/v1 Deployment       found: deployments, namespaced
//	example.com/v1 Widget    not served: meta.IsNoMatchError holds
//	example.com/v1 Widget    its API server is down: an error of another kind
//
// [Kinds] and [Guesser] are separate, because their mistakes cost different things. The agent gives up the objects of a
// kind that is gone, so [Kinds] never guesses: it reads all that the target serves at once, records the groups that
// did not answer, and follows the CustomResourceDefinitions ([Definitions]). Admission has only seconds, and its names
// come from users. So [Guesser] asks for one kind at a time, within a rate and a bounded memory. It guesses what only
// the target may know.
//
// The package knows no Application beyond its name, and does not know what its callers do with a missing kind.
package discovery

import "time"

// unknownFor is how long a server is not asked again for a kind that it does not serve:
// each question costs it at least one request.
const unknownFor = 10 * time.Second
