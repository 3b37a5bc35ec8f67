package mutate

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// unchanged reports whether an agent would carry out the same. No rights are then reviewed, and a
// new version of this program rewrites nothing. Any edit of an Application that was never admitted
// is a change. Only a change of links between objects is none, because the garbage collector makes
// those.
func unchanged(cm, stored *corev1.ConfigMap) bool {
	if !application.IsAdmitted(stored) {
		return onlyLinksChanged(cm, stored)
	}
	return maps.Equal(intent(cm), intent(stored)) && !ptr.Deref(cm.Immutable, false)
}

func onlyLinksChanged(cm, stored *corev1.ConfigMap) bool {
	linked := equality.Semantic.DeepEqual(cm.OwnerReferences, stored.OwnerReferences) && slices.Equal(cm.Finalizers, stored.Finalizers)
	return !linked &&
		maps.Equal(cm.Data, stored.Data) && maps.EqualFunc(cm.BinaryData, stored.BinaryData, slices.Equal) &&
		maps.Equal(cm.Labels, stored.Labels) && maps.Equal(cm.Annotations, stored.Annotations)
}

// intent returns what an agent carries out: the keys of the spec, and the annotations of this
// project. It omits annotations that only restrain the agent, because their removal requests
// nothing that was not admitted.
func intent(cm *corev1.ConfigMap) map[string]string {
	intent := map[string]string{}
	for key, value := range cm.Data {
		if application.IsSpecKey(key) {
			intent[key] = value
		}
	}
	for key, value := range cm.BinaryData {
		if application.IsSpecKey(key) {
			intent["binary "+key] = string(value)
		}
	}
	for name, value := range cm.Annotations {
		if manifest.IsReserved(name) && !holdsBack(name) {
			intent[name] = value
		}
	}
	return intent
}

// holdsBack reports whether the annotation only restrains the agent.
func holdsBack(annotation string) bool {
	switch annotation {
	case application.ForceDeleteAnnotation, application.ModeAnnotation, application.HoldUntilAnnotation, application.HoldAnnotation,
		application.HeldByAnnotation:
		return true
	}
	return false
}
