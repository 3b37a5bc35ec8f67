package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	namespace = "default"
	name      = "nginx"
)

var (
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	services    = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	eventsV1    = schema.GroupVersionResource{Group: "events.k8s.io", Version: "v1", Resource: "events"}
)

func (d *demo) create(ctx context.Context) error {
	d.title("An Application: an annotated ConfigMap with a Deployment and a Service")
	if err := d.writeApplication(); err != nil {
		return err
	}
	changes, err := d.change(ctx, configMaps, "create", "-f", "nginx.yaml")
	if err != nil {
		return err
	}
	running := func(cm *unstructured.Unstructured) bool { return cm.GetLabels()["krake.dev/state"] == "RUNNING" }
	if _, err := changes.until(ctx, "the Application runs", running); err != nil {
		return err
	}
	return d.kubectl(ctx, "get", "deployments,services", "--selector", "krake.dev/owned-by", "--show-labels")
}

func (d *demo) drift(ctx context.Context) error {
	d.title("Somebody changes the image. It is observed, so it is reverted")
	changes, err := d.change(ctx, deployments, "set", "image", "deployment/nginx", "nginx=nginx:evil")
	if err != nil {
		return err
	}
	changed, err := changes.until(ctx, "the image is changed", hasImage("nginx:evil"))
	if err != nil {
		return err
	}
	reverted, err := changes.until(ctx, "the image is reverted", hasImage("nginx:1.27"))
	if err != nil {
		return err
	}
	d.say("--> a second watcher saw nginx:evil for %s, then nginx:1.27 again. The Event about it says who it was:",
		reverted.Sub(changed).Round(time.Millisecond))
	return d.showEvent(ctx, "DriftReverted")
}

func (d *demo) unobserved(ctx context.Context) error {
	d.title("Somebody changes a field that nobody asked to observe. It is left alone")
	patch := `{"spec": {"revisionHistoryLimit": 3}}`
	if err := d.kubectl(ctx, "patch", "deployment", "nginx", "--patch", patch); err != nil {
		return err
	}
	// A repair of another field shows that the agent has seen the earlier patch.
	changes, err := d.change(ctx, deployments, "scale", "deployment/nginx", "--replicas=5")
	if err != nil {
		return err
	}
	for _, want := range []int64{5, 2} {
		if _, err := changes.until(ctx, fmt.Sprintf("replicas is %d", want), hasReplicas(want)); err != nil {
			return err
		}
	}
	limit, err := d.readInt(ctx, "spec", "revisionHistoryLimit")
	if err != nil {
		return err
	}
	if limit != 3 {
		return fmt.Errorf("revisionHistoryLimit is %d: it was not left alone", limit)
	}
	d.say("--> replicas (observed) is 2 again; revisionHistoryLimit (not observed) is still 3")
	return nil
}

func (d *demo) deleteService(ctx context.Context) error {
	d.title("Somebody deletes the Service. It comes back")
	changes, err := d.change(ctx, services, "delete", "service", "nginx")
	if err != nil {
		return err
	}
	deleted, err := changes.untilEvent(ctx, "the Service is deleted", func(e watch.Event) bool { return e.Type == watch.Deleted })
	if err != nil {
		return err
	}
	back, err := changes.untilEvent(ctx, "the Service is back", func(e watch.Event) bool { return e.Type == watch.Added })
	if err != nil {
		return err
	}
	d.say("--> it was away for %s", back.Sub(deleted).Round(time.Millisecond))
	return d.showEvent(ctx, "Recreated")
}

func (d *demo) deleteApplication(ctx context.Context) error {
	d.title("The Application is deleted, and its objects with it")
	if err := d.kubectl(ctx, "delete", "configmap", "nginx"); err != nil {
		return err
	}
	for _, resource := range []schema.GroupVersionResource{deployments, services} {
		list, err := d.client.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: "krake.dev/owned-by"})
		if err != nil {
			return err
		}
		if len(list.Items) > 0 {
			return fmt.Errorf("%s of the Application are left", resource.Resource)
		}
	}
	return d.kubectl(ctx, "get", "deployments,services", "--selector", "krake.dev/owned-by")
}

// showEvent waits for the Event about the Application that has the reason.
func (d *demo) showEvent(ctx context.Context, reason string) error {
	changes, err := d.watch(ctx, eventsV1, metav1.ListOptions{})
	if err != nil {
		return err
	}
	_, err = changes.until(ctx, "there is an Event "+reason, func(event *unstructured.Unstructured) bool {
		if event.Object["reason"] != reason {
			return false
		}
		d.say("    %v", event.Object["note"])
		return true
	})
	return err
}

func (d *demo) readInt(ctx context.Context, path ...string) (int64, error) {
	live, err := d.client.Resource(deployments).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return 0, err
	}
	value, _, err := unstructured.NestedInt64(live.Object, path...)
	return value, err
}

func hasImage(want string) func(*unstructured.Unstructured) bool {
	return func(deployment *unstructured.Unstructured) bool {
		containers, _, err := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
		if err != nil || len(containers) == 0 {
			return false
		}
		container, _ := containers[0].(map[string]any)
		return container["image"] == want
	}
}

func hasReplicas(want int64) func(*unstructured.Unstructured) bool {
	return func(deployment *unstructured.Unstructured) bool {
		got, _, err := unstructured.NestedInt64(deployment.Object, "spec", "replicas")
		return err == nil && got == want
	}
}
