package main

import (
	"encoding/json"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krake-observer/krake-observer/test/bench/workload"
)

// liveOf is an object as a client decodes it.
func liveOf(t *testing.T, kind workload.Kind, manifest map[string]any) runtime.Object {
	t.Helper()
	text, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	var object runtime.Object
	switch kind.Name {
	case "configmap":
		object = &corev1.ConfigMap{}
	case "deployment":
		object = &appsv1.Deployment{}
	default:
		object = &unstructured.Unstructured{}
	}
	if err := json.Unmarshal(text, object); err != nil {
		t.Fatal(err)
	}
	return object
}

// patched is an object after a merge patch.
func patched(t *testing.T, object runtime.Object, patch []byte) runtime.Object {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if text, err = jsonpatch.MergePatch(text, patch); err != nil {
		t.Fatal(err)
	}
	result := object.DeepCopyObject()
	if custom, ok := result.(*unstructured.Unstructured); ok {
		custom.Object = nil
	}
	if err := json.Unmarshal(text, result); err != nil {
		t.Fatal(err)
	}
	return result
}
