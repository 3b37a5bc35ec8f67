// Package gitops tests Applications that Argo CD or Flux applies from Git: the health
// checks in manifests/gitops, and that the status is no difference for either of them.
//
// It runs what both consist of against a control plane with webhook and agent:
// gitops-engine, the packages ssa and cel of Flux, and the Lua interpreter of Argo CD
// with the libraries that Argo CD opens. It is a module of its own, so that their
// modules stay out of the product.
package gitops
