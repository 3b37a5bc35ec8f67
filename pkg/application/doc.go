// Package application is the Application and the ConfigMap that carries it.
//
// It is the only package that knows the names: annotations, labels, data keys,
// finalizers, and the marks on the objects that an Application owns. A user
// writes
//
//	apiVersion: v1
//	kind: ConfigMap
//	metadata:
//	  name: web
//	  annotations: {krake.dev/application: v1}
//	data:
//	  spec.manifest: |
//	    ...
//	  spec.observer_schema: |
//	    ...
//
// and everything else in the ConfigMap is written by the webhook and the agent.
// An annotation of another format version ("v2") is no Application that this
// package can read: [Read] gives an error.
//
// The package is pure: no clock, no client, no cluster.
package application
