// Package habitat carries out Habitats, the custom resources of the Habitat
// operator: it makes an Application of each, which the agent of the cluster carries
// out, and keeps the peer file of each namespace, by which the Pods of all its
// Habitats find each other.
//
// It writes as a ServiceAccount of its own, a user like any other to webhook and
// policies, and never writes a workload itself. Habitats are where hub and target
// are one cluster: an owner reference cannot lead from one cluster to another.
package habitat
