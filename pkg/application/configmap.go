package application

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// IsApplication reports whether a ConfigMap is an Application, of any format version.
func IsApplication(cm *corev1.ConfigMap) bool {
	_, ok := cm.Annotations[FormatAnnotation]
	return ok
}

// ClusterOf returns the target cluster that the ConfigMap names.
func ClusterOf(cm *corev1.ConfigMap) string {
	return cmp.Or(cm.Annotations[ClusterAnnotation], LocalCluster)
}

// IsAdmitted reports whether the webhook has admitted the Application to the cluster that it names.
func IsAdmitted(cm *corev1.ConfigMap) bool {
	_, published := cm.Labels[HolderLabel(ClusterOf(cm))]
	return published
}

// HoldersOf returns the clusters that have objects of the Application, or will have them. It reads
// labels and finalizers, and sorts the clusters.
func HoldersOf(cm *corev1.ConfigMap) []string {
	var holders []string
	for label := range cm.Labels {
		if cluster, ok := strings.CutPrefix(label, holderPrefix); ok {
			holders = append(holders, cluster)
		}
	}
	for _, finalizer := range cm.Finalizers {
		if cluster, ok := strings.CutSuffix(finalizer, finalizerSuffix); ok {
			holders = append(holders, cluster)
		}
	}
	slices.Sort(holders)
	return slices.Compact(holders)
}

// othersOf returns the holders except for a cluster, nil if there are none.
func othersOf(cm *corev1.ConfigMap, cluster string) []string {
	var others []string
	for _, holder := range HoldersOf(cm) {
		if holder != cluster {
			others = append(others, holder)
		}
	}
	return others
}

// GivenUp returns the clusters whose objects the user gives up, because their agents never come
// back. An Application that is not being deleted cannot give up its current cluster.
func GivenUp(cm *corev1.ConfigMap, deleting bool) []string {
	switch value := cm.Annotations[ForceDeleteAnnotation]; {
	case value != "true":
		return slices.DeleteFunc(wordsOf(value), func(name string) bool { return !deleting && name == ClusterOf(cm) })
	case deleting:
		return HoldersOf(cm)
	}
	return nil
}

// Awaited returns the names of the Applications that an Application waits for before the agent of the cluster begins. An Application
// whose agent has begun, and therefore recorded objects, waits for none.
func Awaited(cm *corev1.ConfigMap, cluster string) []string {
	_, begun := cm.Data[InventoryKey(cluster)]
	_, begunCompressed := cm.BinaryData[InventoryKey(cluster)]
	if begun || begunCompressed {
		return nil
	}
	return wordsOf(cm.Annotations[AfterAnnotation])
}

// wordsOf returns the words of a list with commas between them.
func wordsOf(list string) []string {
	var words []string
	for word := range strings.SplitSeq(list, ",") {
		if word = strings.TrimSpace(word); word != "" {
			words = append(words, word)
		}
	}
	return words
}

// setFinalizer adds or removes the finalizer of a cluster.
func setFinalizer(cm *corev1.ConfigMap, cluster string, wanted bool) {
	name := Finalizer(cluster)
	has := slices.Contains(cm.Finalizers, name)
	switch {
	case wanted && !has:
		cm.Finalizers = append(cm.Finalizers, name)
	case !wanted && has:
		cm.Finalizers = slices.DeleteFunc(slices.Clone(cm.Finalizers), func(f string) bool { return f == name })
	}
}
