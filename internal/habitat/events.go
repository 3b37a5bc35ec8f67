package habitat

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/habitat"
)

// recorder writes Events. Events that differ only in their note are counted as one, so
// the related object, which may be nil, contains what distinguishes them.
type recorder struct{ events.EventRecorder }

func (r recorder) event(eventType string, object *corev1.ObjectReference, related runtime.Object, reason, note string) {
	r.Eventf(object, related, eventType, reason, "Reconcile", "%s", cut(note))
}

// cut turns a message into one line that fits into conditions and Events.
func cut(text string) string {
	line := strings.Join(strings.Fields(text), " ")
	return strings.ToValidUTF8(application.Cut(line, application.NoteBytes), "")
}

func habitatReference(h types.NamespacedName, uid types.UID) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: habitat.APIVersion, Kind: habitat.Kind, Namespace: h.Namespace, Name: h.Name, UID: uid}
}

func configMapReference(cm *corev1.ConfigMap) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: cm.Namespace, Name: cm.Name, UID: cm.UID}
}
