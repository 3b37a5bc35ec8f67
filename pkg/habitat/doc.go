// Package habitat knows the custom resource Habitat: what may be in one, the workload
// that it asks for, and which Pod is the peer of a ring.
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
// becomes the StatefulSet greeter of two Pods. Refused is, with all mistakes and their
// paths:
//
//	customVersion: v1beta2
//	spec:
//	  image: registry.example/greeter:1 # belongs below spec.v1beta2
//	  v1beta2:
//	    service: {name: a b, topology: Leader} # no blanks; leader
//
// # Two versions
//
// customVersion, beside spec, tells them apart. [V1beta2] has its fields below
// spec.v1beta2 and becomes a StatefulSet. [V1beta1], which an absent one means, has
// them directly below spec, takes "" for unset, knows neither channel, files,
// persistentStorage nor updateStrategy, and becomes a Deployment. It is deprecated.
//
// # What is checked
//
// All that would be refused later, or would be accepted and do something else than
// what was meant: the CustomResourceDefinition says the same, but clusters may have
// another one. Unknown fields are mistakes, and a null is an absent field. Nothing is
// trusted: the cost is in proportion to the size of the object, and errors repeat
// neither long values nor those of environment variables.
//
// # What is generated
//
// The same bytes for the same Habitat, in this version of the program and the next:
// another template would restart Pods that nobody changed. What the API server
// would write otherwise is written its way (2048Mi is 2Gi).
//
// The package knows no cluster and no Application.
package habitat
