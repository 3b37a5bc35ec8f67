package mutate

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// checkValuesFrom refuses sources for Secrets that the manifest does not have, and a Secret that is its own source. An annotation
// with an invalid value is refused elsewhere.
func checkValuesFrom(cm *corev1.ConfigMap, wanted []manifest.ID) field.ErrorList {
	settings, _ := application.SettingsOf(cm)
	var refusals field.ErrorList
	for _, value := range settings.ValuesFrom {
		filled := slices.DeleteFunc(slices.Clone(wanted), func(id manifest.ID) bool { return !value.Fills(id) })
		isItself := func(id manifest.ID) bool {
			return id.Name == value.Source && (id.Namespace == "" || id.Namespace == cm.Namespace)
		}
		switch {
		case len(filled) == 0:
			refusals = append(refusals, invalid(annotationPath(application.ValuesFromAnnotation), fmt.Sprintf(
				"the manifest has no Secret %q: add one without values, with its type, or leave the entry out", value.Name)))
		case slices.ContainsFunc(filled, isItself):
			refusals = append(refusals, invalid(annotationPath(application.ValuesFromAnnotation), fmt.Sprintf(
				"Secret %q would be its own source: give one of the two another name", value.Name)))
		}
	}
	return refusals
}

// Filled reports of each resource whether its values come from another Secret.
func Filled(cm *corev1.ConfigMap, wanted []manifest.ID) []bool {
	settings, _ := application.SettingsOf(cm)
	filled := make([]bool, len(wanted))
	for i, id := range wanted {
		filled[i] = application.SourcesFor(settings.ValuesFrom, id) != nil
	}
	return filled
}

// CheckValues refuses sources of values for an Application that is carried out as the agent. Otherwise, users could have the agent read
// Secrets for them.
func (a Accounts) CheckValues(cm *corev1.ConfigMap) field.ErrorList {
	if _, ok := cm.Annotations[application.ValuesFromAnnotation]; !ok || a.For(cm.Annotations[application.ServiceAccountAnnotation]) != "" {
		return nil
	}
	return field.ErrorList{forbidden(annotationPath(application.ValuesFromAnnotation),
		"only a service account reads the values, never the agent: name one with annotation "+application.ServiceAccountAnnotation)}
}
