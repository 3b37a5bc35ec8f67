package mutate

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// longHold is longer than a manual repair takes.
const longHold = 7 * 24 * time.Hour

// SuspectHold warns of a hold without effect, or of a very long one, unless hold and mode are
// stored already. now is the time of the request.
func SuspectHold(cm, stored *corev1.ConfigMap, now time.Time) []string {
	settings, refusals := application.SettingsOf(cm)
	if _, held := cm.Annotations[application.HoldUntilAnnotation]; !held || len(refusals) > 0 || sameHold(cm, stored) {
		return nil
	}
	var warning string
	switch {
	case !settings.HoldUntil.After(now):
		warning = "this time is past, so nothing is held: set a later one, or leave it out"
	case settings.Mode != application.Enforce:
		warning = fmt.Sprintf("mode %s reverts nothing, so a hold has no effect: leave one of the two out", settings.Mode)
	case settings.HoldUntil.Sub(now) > longHold:
		warning = "it is more than 7 days away, and no drift is reverted until then: to stop repairs permanently, set " + application.ModeAnnotation + ": observe"
	default:
		return nil
	}
	return []string{annotationPath(application.HoldUntilAnnotation) + ": " + warning}
}

// RecordHolder records the user who holds an Application back by mode or hold, in the annotation
// [application.HeldByAnnotation]. The stored user stays until another one sets a mode or a hold. What the
// request says is ignored, with a warning.
func RecordHolder(cm, stored *corev1.ConfigMap, user string) (warnings []string) {
	const by = application.HeldByAnnotation
	if brought, ok := cm.Annotations[by]; ok && brought != stored.Annotations[by] && brought != user {
		warnings = []string{annotationPath(by) + ": it has no effect, because the webhook writes it: leave it out"}
	}
	former, isKnown := stored.Annotations[by]
	switch {
	case isHeldBack(cm) && holdsBackMore(cm, stored):
		cm.Annotations[by] = user
	case isHeldBack(cm) && isKnown:
		cm.Annotations[by] = former
	default:
		delete(cm.Annotations, by)
	}
	return warnings
}

func isHeldBack(cm *corev1.ConfigMap) bool {
	_, isHeld := cm.Annotations[application.HoldUntilAnnotation]
	return isHeld || isRestraining(cm)
}

func isRestraining(cm *corev1.ConfigMap) bool {
	mode, isSet := cm.Annotations[application.ModeAnnotation]
	return isSet && mode != string(application.Enforce)
}

// holdsBackMore reports whether a request sets a mode or a hold. The policy krake-configmaps requires a
// right for the same.
func holdsBackMore(cm, stored *corev1.ConfigMap) bool {
	if !application.IsApplication(stored) {
		return true
	}
	until, isHeld := cm.Annotations[application.HoldUntilAnnotation]
	return isRestraining(cm) && cm.Annotations[application.ModeAnnotation] != stored.Annotations[application.ModeAnnotation] ||
		isHeld && until != stored.Annotations[application.HoldUntilAnnotation]
}

func sameHold(cm, stored *corev1.ConfigMap) bool {
	return application.IsApplication(stored) &&
		cm.Annotations[application.HoldUntilAnnotation] == stored.Annotations[application.HoldUntilAnnotation] &&
		cm.Annotations[application.ModeAnnotation] == stored.Annotations[application.ModeAnnotation]
}
