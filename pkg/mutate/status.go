package mutate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// statusOf returns the status that webhook and agents have written, by its place.
func statusOf(cm *corev1.ConfigMap) map[string]string {
	status := map[string]string{}
	for key, value := range cm.Data {
		if application.IsStatusKey(key) {
			status["data."+key] = value
		}
	}
	for key, value := range cm.BinaryData {
		if application.IsStatusKey(key) {
			status["binaryData."+key] = string(value)
		}
	}
	for label, value := range cm.Labels {
		if application.IsStatusLabel(label) {
			status["metadata.labels["+label+"]"] = value
		}
	}
	for _, finalizer := range cm.Finalizers {
		if application.IsOurFinalizer(finalizer) {
			status["metadata.finalizers["+finalizer+"]"] = ""
		}
	}
	return status
}

// ignored warns of status in a request that is not stored, because kubectl reports that it was set.
func ignored(brought map[string]string, cm *corev1.ConfigMap) []string {
	status := statusOf(cm)
	var places []string
	for _, place := range slices.Sorted(maps.Keys(brought)) {
		if value, ok := status[place]; !ok || value != brought[place] {
			places = append(places, place)
		}
	}
	if len(places) == 0 {
		return nil
	}
	const most = 3
	if more := len(places) - most; more > 0 {
		places = append(places[:most], fmt.Sprintf("%d more", more))
	}
	return []string{strings.Join(places, ", ") + ": only webhook and agents write it, so the request does not change it"}
}

// takeStatus replaces the status in a request by the stored status, and the signature by the stored one.
func takeStatus(cm, stored *corev1.ConfigMap) {
	cm.Data = replaced(cm.Data, stored.Data, application.IsStatusKey)
	cm.BinaryData = replaced(cm.BinaryData, stored.BinaryData, application.IsStatusKey)
	cm.Labels = replaced(cm.Labels, stored.Labels, application.IsStatusLabel)
	cm.Annotations = replaced(cm.Annotations, stored.Annotations, func(name string) bool { return name == application.SignatureAnnotation })
	cm.Finalizers = slices.DeleteFunc(cm.Finalizers, application.IsOurFinalizer)
	for _, finalizer := range stored.Finalizers {
		if application.IsOurFinalizer(finalizer) {
			cm.Finalizers = append(cm.Finalizers, finalizer)
		}
	}
	slices.SortStableFunc(cm.Finalizers, func(a, b string) int { // the stored order, so that the same request changes nothing
		return slices.Index(stored.Finalizers, a) - slices.Index(stored.Finalizers, b)
	})
}

// replaced returns a map with the status entries of the stored one in place of its own.
func replaced[V any](fields, stored map[string]V, isStatus func(string) bool) map[string]V {
	maps.DeleteFunc(fields, func(key string, _ V) bool { return isStatus(key) })
	for key, value := range stored {
		if isStatus(key) {
			if fields == nil {
				fields = map[string]V{}
			}
			fields[key] = value
		}
	}
	return fields
}
