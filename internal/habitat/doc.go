// Package habitat runs the controllers of Habitats, the custom resources of the Habitat
// operator. They write an Application for each Habitat, which the agent of the cluster
// applies. They also write the peer file of each namespace, with which the Pods of all
// its Habitats find each other.
//
// The controllers have a ServiceAccount of their own, which is a user like any other for
// webhook and policies. They never write a workload. Hub and target must be the same
// cluster, because an owner reference cannot lead to another cluster.
package habitat
