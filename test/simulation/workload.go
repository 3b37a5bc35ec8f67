package main

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/krake-observer/krake-observer/test/kit"
)

// servicesIn is of how many Applications one has a Service; all others have a
// ConfigMap.
const servicesIn = 10

// clusterOf is the name of a cluster, and of its namespace on the hub and on itself.
func clusterOf(i int) string { return fmt.Sprintf("sim-%d", i) }

// nameOf is the name of an Application's object. Its own is another: it is a
// ConfigMap as well.
func nameOf(i int) string { return fmt.Sprintf("app-%d", i) }

func isService(i int) bool { return i%servicesIn == 0 }

// resourceOf is where an Application's object is.
func resourceOf(i int) string {
	if isService(i) {
		return "services"
	}
	return "configmaps"
}

// applicationOf is an Application as a user creates it.
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

// changeOf is a merge patch of what is observed of an Application's object, and isWanted
// tells if it is as the Application has it.
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
