package main

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
)

// The reference lists the annotations that admission lets users write, and those that it writes itself.
func TestVocabularyHasTheAnnotationsOfUsers(t *testing.T) {
	var told []string
	for _, name := range annotationNames() {
		if name.On == "Application" && name.Writer != byWebhook {
			told = append(told, name.Key)
		}
	}
	check.Equal(t, "annotations that are told", sorted(application.UserAnnotations()), sorted(told))
}

// Each listed value can be parsed, and all other values are refused.
func TestVocabularyHasTheValues(t *testing.T) {
	checked := 0
	for _, name := range annotationNames() {
		if len(name.Values) == 0 || name.Key == application.FormatAnnotation {
			continue
		}
		checked++
		for _, value := range append(name.Values, "nonsense") {
			cm := corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{name.Key: value}}}
			_, refusals := application.SettingsOf(&cm)
			check.Equal(t, name.Key+": "+value+" is refused", value == "nonsense", len(refusals) > 0)
		}
	}
	if checked < 6 {
		t.Errorf("%d annotations have values that can be counted: that are too few", checked)
	}
}

// The listed writers of a key of the data are those that may write it.
func TestVocabularyHasTheWriters(t *testing.T) {
	const cluster = clusterPart
	var keys []string
	for _, name := range dataKeyNames() {
		key := name.Key
		if name.Writer == byUser {
			keys = append(keys, key)
		}
		var want writer
		switch {
		case application.IsSpecKey(key):
			want = byUser
		case !application.IsAgentKey(key):
			want = byWebhook
		case application.IsKeyOf(key, cluster, false):
			want = byAgent
		default:
			want = byAgentOfTarget
		}
		check.Equal(t, key+": writer", want, name.Writer)
	}
	check.Equal(t, "keys that are told", sorted(application.SpecKeys()), sorted(keys))
}

func sorted(texts []string) []string { return slices.Sorted(slices.Values(texts)) }
