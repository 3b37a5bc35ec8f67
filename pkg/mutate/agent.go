package mutate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// CheckAgentUpdate refuses changes that the agent of a cluster must not make. It writes only the
// status of Applications that are, or were, for its cluster. The ValidatingAdmissionPolicy
// krake-configmaps has the same rules, and works without the webhook.
func CheckAgentUpdate(cm, stored *corev1.ConfigMap, cluster string) field.ErrorList {
	if !application.IsApplication(cm) || !application.IsApplication(stored) {
		return field.ErrorList{forbidden(annotationPath(application.FormatAnnotation), "an agent must not create or remove an Application")}
	}
	if _, holds := stored.Labels[application.HolderLabel(cluster)]; !holds {
		return field.ErrorList{forbidden("metadata.labels["+application.HolderLabel(cluster)+"]", "the Application is not for the cluster of this agent")}
	}
	current := application.ClusterOf(stored) == cluster
	var refusals field.ErrorList
	refuse := func(path string, names []string, own func(string) bool) {
		for _, name := range names {
			if !own(name) {
				refusals = append(refusals, forbidden(path+"["+name+"]", "it is not for the agent of cluster "+cluster+" to change"))
			}
		}
	}
	ownKey := func(key string) bool { return application.IsKeyOf(key, cluster, current) }
	refuse("data", changed(cm.Data, stored.Data), ownKey)
	refuse("binaryData", changed(cm.BinaryData, stored.BinaryData), ownKey)
	refuse("metadata.annotations", changed(cm.Annotations, stored.Annotations), func(string) bool { return false })
	refuse("metadata.labels", changed(cm.Labels, stored.Labels), func(label string) bool {
		_, kept := cm.Labels[label]
		return label == application.StateLabel && current || label == application.HolderLabel(cluster) && !kept
	})
	refusals = append(refusals, checkAgentFinalizers(cm, stored, application.Finalizer(cluster), current)...)
	if ptr.Deref(cm.Immutable, false) != ptr.Deref(stored.Immutable, false) {
		refusals = append(refusals, forbidden("immutable", "it is not for an agent to change"))
	}
	if !equality.Semantic.DeepEqual(cm.OwnerReferences, stored.OwnerReferences) {
		refusals = append(refusals, forbidden("metadata.ownerReferences", "they are not for an agent to change"))
	}
	return atMost(refusals)
}

// changed returns the keys whose values differ, sorted.
func changed[V string | []byte](a, b map[string]V) []string {
	return slices.DeleteFunc(sets.List(sets.KeySet(a).Union(sets.KeySet(b))), func(key string) bool {
		value, inA := a[key]
		other, inB := b[key]
		return inA == inB && string(value) == string(other)
	})
}

// checkAgentFinalizers allows an agent to add its own finalizer if the Application is for its
// cluster, and to remove it at any time.
func checkAgentFinalizers(cm, stored *corev1.ConfigMap, own string, current bool) field.ErrorList {
	others := func(finalizers []string) []string {
		return slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool { return f == own })
	}
	added := slices.Contains(cm.Finalizers, own) && !slices.Contains(stored.Finalizers, own)
	if slices.Equal(others(cm.Finalizers), others(stored.Finalizers)) && (current || !added) {
		return nil
	}
	return field.ErrorList{forbidden("metadata.finalizers", "an agent removes its own and, if the Application is for its cluster, adds it")}
}
