package enrol

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/manifests"
	"github.com/krake-observer/krake-observer/pkg/application"
)

const fieldManager = "kubectl-krake"

// read gives the objects of a file of manifests/enrolment, for a cluster and a
// namespace of the hub.
func read(file, cluster, namespace string) ([]*unstructured.Unstructured, error) {
	text, err := manifests.Files.ReadFile("enrolment/" + file)
	if err != nil {
		return nil, err
	}
	named := strings.NewReplacer(manifests.ClusterName, cluster, manifests.HubNamespace, namespace).Replace(string(text))
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(named, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		object.SetLabels(labelled(object.GetLabels(), cluster))
		objects = append(objects, object)
	}
	return objects, nil
}

func labelled(labels map[string]string, cluster string) map[string]string {
	if labels == nil {
		labels = map[string]string{}
	}
	labels[application.EnrolmentLabel] = cluster
	labels["app.kubernetes.io/part-of"] = "krake-observer"
	return labels
}

// apply makes the objects what they are to be, and says so as kubectl does.
func (h *hub) apply(ctx context.Context, objects []*unstructured.Unstructured, say func(string, ...any)) error {
	for _, object := range objects {
		if _, err := h.resource(object).Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true}); err != nil {
			return fmt.Errorf("apply %s: %w", describe(object), err)
		}
		say("%s serverside-applied\n", describe(object))
	}
	return nil
}

// resource is where an object is. The kinds of an enrolment have the plurals that
// one would guess.
func (h *hub) resource(object *unstructured.Unstructured) dynamic.ResourceInterface {
	resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	return h.dynamic.Resource(resource).Namespace(object.GetNamespace())
}

// describe names an object as kubectl does, and where it is.
func describe(object *unstructured.Unstructured) string {
	gvk := object.GroupVersionKind()
	name := strings.ToLower(gvk.Kind)
	if gvk.Group != "" {
		name += "." + gvk.Group
	}
	name += "/" + object.GetName()
	if object.GetNamespace() != "" {
		name += " in namespace " + object.GetNamespace()
	}
	return name
}
