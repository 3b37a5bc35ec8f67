// Package policies tests the ValidatingAdmissionPolicies of manifests/base, and the
// definition of Habitats with its policies, on a real API server. Everything is
// installed by kubectl as users install it, and then the webhook's configuration is
// deleted: what is refused here, the policies refuse alone, as they do while the
// webhook is down.
package policies
