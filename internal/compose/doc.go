// Package compose makes the spec of an Application from the manifests that people have: files,
// folders, the output of helm template, kustomizations.
//
// It reads whatever kubectl reads. Webhook and agent are stricter than kubectl: they accept no
// anchors and no Lists. This package writes such documents again in a form that they accept. Any
// other document stays as its author wrote it, with comments.
//
// It knows no cluster. Package mutate decides what an Application may contain.
package compose
