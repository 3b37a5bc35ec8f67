package mutate

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// PrepareForCreate completes a ConfigMap that a user creates as an Application,
// or makes one by annotating it: status that it brings is thrown away, the
// status documents are computed. Warnings are for the user; with refusals the
// request has to be refused, and cm is not to be used.
func PrepareForCreate(cm *corev1.ConfigMap) ([]string, field.ErrorList) {
	dropStatus(cm)
	return publish(cm, nil)
}

// PrepareForUpdate completes a user's update of a ConfigMap of which at least
// one version is an Application. Its status is the stored one; the documents
// are computed again only if the spec changed.
func PrepareForUpdate(cm, stored *corev1.ConfigMap) ([]string, field.ErrorList) {
	if !application.IsApplication(stored) {
		return PrepareForCreate(cm)
	}
	if !application.IsApplication(cm) {
		return nil, field.ErrorList{field.Forbidden(
			field.NewPath("metadata", "annotations").Key(application.FormatAnnotation),
			"an Application cannot be turned back into a plain ConfigMap: delete it")}
	}
	if !cm.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	dropStatus(cm)
	keepStatus(cm, stored)
	if unchanged(cm, stored) {
		return nil, nil
	}
	learned, err := application.LearnedOf(stored)
	if err != nil {
		return nil, field.ErrorList{invalid("data", err.Error())}
	}
	return publish(cm, learned)
}

// unchanged tells if the stored documents are still those of the ConfigMap, so
// that a new version of this program rewrites nothing by itself.
func unchanged(cm, stored *corev1.ConfigMap) bool {
	_, published := stored.Labels[application.HolderLabel(application.ClusterOf(stored))]
	return published &&
		application.SpecOf(cm) == application.SpecOf(stored) &&
		application.ClusterOf(cm) == application.ClusterOf(stored) &&
		cm.Annotations[application.FormatAnnotation] == stored.Annotations[application.FormatAnnotation] &&
		(cm.Immutable == nil || !*cm.Immutable)
}

func publish(cm *corev1.ConfigMap, learned []map[string]any) ([]string, field.ErrorList) {
	if refusals := checkConfigMap(cm); len(refusals) > 0 {
		return nil, refusals
	}
	desired, warnings, refusals := Desire(application.SpecOf(cm), learned, cm.Namespace)
	if len(refusals) > 0 {
		return nil, refusals
	}
	if err := application.Publish(cm, desired.Mangled.Documents(), desired.Resources); err != nil {
		return nil, field.ErrorList{field.InternalError(field.NewPath("data"), err)}
	}
	return warnings, nil
}

// dropStatus removes everything that only the webhook and the agents write.
func dropStatus(cm *corev1.ConfigMap) {
	maps.DeleteFunc(cm.Data, func(key, _ string) bool { return application.IsStatusKey(key) })
	maps.DeleteFunc(cm.BinaryData, func(key string, _ []byte) bool { return application.IsStatusKey(key) })
	maps.DeleteFunc(cm.Labels, func(label, _ string) bool { return application.IsStatusLabel(label) })
	cm.Finalizers = slices.DeleteFunc(cm.Finalizers, application.IsOurFinalizer)
}

// keepStatus takes over what webhook and agents wrote into the stored object.
func keepStatus(cm, stored *corev1.ConfigMap) {
	cm.Data = keep(cm.Data, stored.Data, application.IsStatusKey)
	cm.BinaryData = keep(cm.BinaryData, stored.BinaryData, application.IsStatusKey)
	cm.Labels = keep(cm.Labels, stored.Labels, application.IsStatusLabel)
	for _, finalizer := range stored.Finalizers {
		if application.IsOurFinalizer(finalizer) {
			cm.Finalizers = append(cm.Finalizers, finalizer)
		}
	}
	slices.SortStableFunc(cm.Finalizers, func(a, b string) int { // the stored order, so that a mere re-sending changes nothing
		return slices.Index(stored.Finalizers, a) - slices.Index(stored.Finalizers, b)
	})
}

func keep[V any](into, from map[string]V, ours func(string) bool) map[string]V {
	for key, value := range from {
		if !ours(key) {
			continue
		}
		if into == nil {
			into = map[string]V{}
		}
		into[key] = value
	}
	return into
}

// Summary gives the refusals as one line.
func Summary(refusals field.ErrorList) string {
	texts := make([]string, 0, len(refusals))
	for _, refusal := range refusals {
		texts = append(texts, refusal.Error())
	}
	return strings.Join(texts, "; ")
}
