// Package application is the Application and the ConfigMap that carries it.
//
// It is the only package that knows the names: annotations, labels, data keys, finalizers, and the
// marks on the objects of an Application. A user writes
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
// and the webhook and the agent write everything else in the ConfigMap. [Read] returns an error for
// an annotation of another format version ("v2").
//
// The package is pure: no clock, no client, no cluster.
package application
