package hub

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// IntentChanged leaves out the events of writes of webhook and agents that the agent of
// this cluster need not act on, its own echo among them. It calls updated with the
// ConfigMap of each update.
func IntentChanged(cluster string, folding *Folding, updated func(*corev1.ConfigMap)) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.ConfigMap)
		after, okAfter := e.ObjectNew.(*corev1.ConfigMap)
		if okAfter {
			updated(after)
		}
		if !ok || !okAfter {
			return true
		}
		before, err := folding.Unfold(before)
		after, errAfter := folding.Unfold(after)
		return err != nil || errAfter != nil || !application.SameFor(before, after, cluster)
	}}
}
