// Package habitat knows the custom resource Habitat: its valid fields, the workload that
// a Habitat becomes, and which Pod is the peer of a ring.
//
//	apiVersion: habitat.sh/v1beta1
//	kind: Habitat
//	metadata: {name: greeter, namespace: shop}
//	customVersion: v1beta2
//	spec:
//	  v1beta2:
//	    image: registry.example/greeter:1
//	    count: 2
//	    service: {name: greeter, topology: standalone}
//
// becomes the StatefulSet greeter of two Pods. [Parse] refuses, with the path of each
// mistake:
//
//	customVersion: v1beta2
//	spec:
//	  image: registry.example/greeter:1 # belongs below spec.v1beta2
//	  v1beta2:
//	    service: {name: a b, topology: Leader} # no blanks; leader
//
// # Two versions
//
// The field customVersion, beside spec, selects the version. [V1beta2] has its fields
// below spec.v1beta2 and becomes a StatefulSet. [V1beta1], the default, is deprecated. It
// has its fields directly below spec, and "" means unset. It knows neither channel, files,
// persistentStorage nor updateStrategy, and becomes a Deployment.
//
// # Validation
//
// [Parse] refuses values that would be refused later, or that would have an effect that the user
// does not intend. The CustomResourceDefinition has the same rules, but a cluster may have another
// definition. Unknown fields are mistakes, and a null is an absent field. The cost is proportional
// to the size of the object. Errors repeat neither long values nor those of environment variables.
//
// # Generated objects
//
// The same Habitat becomes the same bytes, in this version of the program and the next:
// another template would restart Pods without a change by the user. Values have the
// canonical form of the API server (2048Mi is 2Gi).
//
// The package knows no cluster and no Application.
package habitat
