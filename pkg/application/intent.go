package application

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// Intent returns what an agent carries out: the keys of the spec, and the annotations of this
// project. It omits annotations that only restrain the agent, because their removal requests
// nothing that was not admitted, and the signature.
func Intent(cm *corev1.ConfigMap) map[string]string {
	intent := map[string]string{}
	for key, value := range cm.Data {
		if IsSpecKey(key) {
			intent[key] = value
		}
	}
	for key, value := range cm.BinaryData {
		if IsSpecKey(key) {
			intent["binary "+key] = string(value)
		}
	}
	for name, value := range cm.Annotations {
		if manifest.IsReserved(name) && !isNoIntent(name) {
			intent[name] = value
		}
	}
	return intent
}

// isNoIntent reports whether the annotation only restrains the agent, or is the signature.
func isNoIntent(annotation string) bool {
	switch annotation {
	case ForceDeleteAnnotation, ModeAnnotation, HoldUntilAnnotation, HoldAnnotation, HeldByAnnotation, SignatureAnnotation:
		return true
	}
	return false
}
