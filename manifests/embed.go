// Package manifests holds the installation: a kustomize base and its overlays,
// embedded so that the tests apply the very files that users apply.
package manifests

import "embed"

// Files are the folders base and overlays.
//
//go:embed base overlays
var Files embed.FS
