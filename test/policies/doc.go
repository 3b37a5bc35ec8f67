// Package policies tests the ValidatingAdmissionPolicies of manifests/base, and the
// definition of Habitats with its policies, on a real API server. kubectl installs
// everything as users do. Then the webhook's configuration is deleted: every refusal
// comes from the policies, as while the webhook is down.
package policies
