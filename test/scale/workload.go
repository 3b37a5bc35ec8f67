package main

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// namespaces is over how many the Applications are spread.
const namespaces = 10

func namespaceOf(i int) string { return fmt.Sprintf("scale-%d", i%namespaces) }

// nameOf is the name of an Application's objects. Its own is another: it is a
// ConfigMap as well.
func nameOf(i int) string { return fmt.Sprintf("app-%d", i) }

// applicationOf is an Application as a user creates it.
func applicationOf(i int) (*corev1.ConfigMap, error) {
	manifest, err := manifestOf(nameOf(i))
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: nameOf(i) + "-application", Annotations: map[string]string{application.FormatAnnotation: application.Format},
		},
		Data: map[string]string{application.ManifestKey: manifest},
	}, err
}

// manifestOf describes three objects, without Pods.
func manifestOf(name string) (string, error) {
	type object = map[string]any
	labels := object{"app": name}
	var documents []string
	for _, resource := range []object{
		{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": name}, "data": object{"key": "value"}},
		{
			"apiVersion": "v1", "kind": "Service", "metadata": object{"name": name},
			"spec": object{"selector": labels, "ports": []any{object{"port": 80, "targetPort": 80}}},
		},
		{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": object{"name": name},
			"spec": object{
				"replicas": 0, "selector": object{"matchLabels": labels},
				"template": object{
					"metadata": object{"labels": labels},
					"spec":     object{"containers": []any{object{"name": "main", "image": "main:1"}}},
				},
			},
		},
	} {
		text, err := json.Marshal(resource)
		if err != nil {
			return "", err
		}
		documents = append(documents, string(text))
	}
	return strings.Join(documents, "\n---\n"), nil
}
