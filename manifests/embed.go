// Package manifests holds the installation: a kustomize base, components and overlays,
// embedded so that the tests apply the very files that users apply. The folder
// enrolment has what a hub keeps for each further cluster.
//
// In enrolment and in overlays/spoke a cluster is called [ClusterName]. Replace it with
// the cluster's own name before you apply them.
package manifests

import "embed"

// ClusterName and HubNamespace stand for the name of a cluster, and for a
// namespace of the hub that has its Applications.
const (
	ClusterName  = "cluster-name"
	HubNamespace = "hub-namespace"
)

// Files are the folders of the installation and of enrolments.
//
//go:embed base components overlays enrolment
var Files embed.FS
