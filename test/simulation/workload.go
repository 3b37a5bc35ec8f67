package main

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/krake-observer/krake-observer/test/kit"
)

// servicesIn: one of this many Applications has a Service, and all others have a
// ConfigMap.
const servicesIn = 10

// clusterOf returns the name of a cluster, which is also that of its namespaces on hub
// and target.
func clusterOf(i int) string { return fmt.Sprintf("sim-%d", i) }

// nameOf returns the name of an Application's object. The Application has another name,
// because it is a ConfigMap as well.
func nameOf(i int) string { return fmt.Sprintf("app-%d", i) }

func isService(i int) bool { return i%servicesIn == 0 }

// resourceOf returns the resource of an Application's object.
func resourceOf(i int) string {
	if isService(i) {
		return "services"
	}
	return "configmaps"
}

// applicationOf returns an Application as a user creates it.
func applicationOf(i, clusters int) (*corev1.ConfigMap, error) {
	manifest, err := json.Marshal(objectOf(i))
	name := clusterOf(i % clusters)
	return kit.Application(name, nameOf(i)+"-application", string(manifest), kit.On(name)), err
}

func objectOf(i int) map[string]any {
	type object = map[string]any
	metadata := object{"name": nameOf(i)}
	if isService(i) {
		return object{"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": object{
			"selector": object{"app": nameOf(i)}, "ports": []any{object{"port": int64(80), "targetPort": int64(8080)}},
		}}
	}
	return object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": object{"key": "value", "another": "value"}}
}

// changeOf returns a merge patch of the observed field of an Application's object, and
// isWanted reports whether the field has the desired value.
func changeOf(i int) string {
	if isService(i) {
		return `{"spec": {"selector": {"app": "changed"}}}`
	}
	return `{"data": {"key": "changed"}}`
}

func isWanted(content map[string]any) bool {
	if data, ok := content["data"].(map[string]any); ok {
		return data["key"] == "value"
	}
	spec, _ := content["spec"].(map[string]any)
	selector, _ := spec["selector"].(map[string]any)
	return selector["app"] != "changed"
}
