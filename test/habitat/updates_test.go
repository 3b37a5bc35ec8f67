package habitat

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/habitat"
	"github.com/krake-observer/krake-observer/test/kit"
)

// crew is what a watch has seen of the Pods of a Habitat, in order.
type crew struct {
	ready map[string]types.UID
	// least is the smallest number of ready Pods, and came has the new Pods by name.
	least int
	came  map[string][]types.UID
	ended chan struct{}
	stop  context.CancelFunc
}

// observe watches the Pods of a Habitat, which are all ready now.
func (h home) observe(t *testing.T, name string) *crew {
	t.Helper()
	list, err := h.CoreV1().Pods(h.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "habitat-name=" + name})
	kit.Must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	c := &crew{ready: map[string]types.UID{}, came: map[string][]types.UID{}, ended: make(chan struct{}), stop: stop}
	for i := range list.Items {
		c.see(watch.Event{Type: watch.Added, Object: &list.Items[i]})
	}
	c.least = len(c.ready)
	if c.least != len(list.Items) {
		t.Fatalf("%d of %d Pods are ready", c.least, len(list.Items))
	}
	events, err := h.CoreV1().Pods(h.namespace).Watch(ctx, metav1.ListOptions{LabelSelector: "habitat-name=" + name, ResourceVersion: list.ResourceVersion})
	kit.Must(t, err)
	go func() {
		defer close(c.ended)
		for event := range events.ResultChan() {
			c.see(event)
		}
	}()
	t.Cleanup(stop)
	return c
}

func (c *crew) see(event watch.Event) {
	pod, ok := event.Object.(*corev1.Pod)
	if !ok {
		return
	}
	if uids := c.came[pod.Name]; !slices.Contains(uids, pod.UID) {
		c.came[pod.Name] = append(uids, pod.UID)
	}
	switch {
	case event.Type != watch.Deleted && pod.DeletionTimestamp == nil && isReady(pod):
		c.ready[pod.Name] = pod.UID
	case c.ready[pod.Name] == pod.UID:
		delete(c.ready, pod.Name)
	}
	c.least = min(c.least, len(c.ready))
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
		return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	})
}

// end ends the watch. Its results can be read after that.
func (c *crew) end() *crew {
	c.stop()
	<-c.ended
	return c
}

// checkReplaced fails unless each Pod was replaced once.
func (c *crew) checkReplaced(t *testing.T) {
	t.Helper()
	for name, uids := range c.came {
		if len(uids) != 2 {
			t.Errorf("Pod %s was replaced %d times, want once", name, len(uids)-1)
		}
	}
}

// mustRoll waits until all Pods of a Habitat have the current revision, and are ready.
func (h home) mustRoll(t *testing.T, name, image string) {
	t.Helper()
	kit.Eventually(t, func() string {
		set := h.get(t, kit.StatefulSets, name)
		want := kit.Field(set, "spec", "replicas")
		status, _ := kit.Field(set, "status").(object)
		if got := imageOf(set); got != image {
			return fmt.Sprintf("the image of %s is %v, want %s", name, got, image)
		}
		if status["observedGeneration"] != set.GetGeneration() || status["readyReplicas"] != want {
			return fmt.Sprintf("StatefulSet %s is at %v, want %v Pods", name, status, want)
		}
		for _, pod := range h.pods(t, name) {
			if pod.Labels["controller-revision-hash"] != status["updateRevision"] {
				return fmt.Sprintf("Pod %s is of another revision than %v", pod.Name, status["updateRevision"])
			}
		}
		return ""
	})
}

func imageOf(workload *unstructured.Unstructured) any {
	return kit.Field(workload, "spec", "template", "spec", "containers", 0, "image")
}

// "Pods are replaced one by one": after a new image, at most one Pod at a time is
// missing or not ready, and each is replaced once.
func TestRollingUpdate(t *testing.T) {
	t.Parallel()
	const count = 4
	h := newHome(t)
	h.run(t, service("web", count, nil))
	watched := h.observe(t, "web")
	h.edit(t, "web", `{"image": "registry.test/hab/web:2"}`)
	h.mustRoll(t, "web", "registry.test/hab/web:2")
	h.mustRun(t, "web")
	seen := watched.end()
	t.Logf("of %d Pods at least %d were ready at any time", count, seen.least)
	if seen.least != count-1 {
		t.Errorf("at a time only %d of %d Pods were ready, want %d at least and in between", seen.least, count, count-1)
	}
	seen.checkReplaced(t)
	// Only the StatefulSet's own controller has done that.
	if ours := kit.WholeAudit(h.Cluster).Requests(t, isOurs, kit.In(h.namespace), isDeletion, kit.Of("pods")); len(ours) > 0 {
		t.Errorf("want no deletion of Pods by us, got %s", kit.List(ours))
	}
}

// A group that elects a leader may ask for OnDelete: all outdated Pods are replaced at
// once, and an Event reports it. Pods of the right revision stay, even if a user edits
// the template.
func TestOnDelete(t *testing.T) {
	kit.Long(t, "a long story of one Habitat")
	t.Parallel()
	const count = 4
	h := newHome(t)
	h.run(t, service("db", count, object{"updateStrategy": "OnDelete", "service": with("db", "leader", nil)}))
	first := uids(h.pods(t, "db"))
	watched := h.observe(t, "db")
	for round := range 10 {
		h.patch(t, kit.StatefulSets, "db", fmt.Sprintf("hand-%d", round), `{"spec": {"template": {"metadata": {"labels": {"topology": "none"}}}}}`)
		h.eventuallyField(t, "leader", kit.StatefulSets, "db", "spec", "template", "metadata", "labels", "topology")
	}
	h.mustTell(t, "db", "Warning", "Overwritten", "spec.template.metadata.labels.topology", "hand-9")
	h.awaitCalm(t)
	if diff := gocmp.Diff(first, uids(h.pods(t, "db"))); diff != "" {
		t.Errorf("Pods of the right revision were replaced: -before +after\n%s", diff)
	}
	from := h.Mark(t)
	h.edit(t, "db", `{"image": "registry.test/hab/db:2"}`)
	h.mustRoll(t, "db", "registry.test/hab/db:2")
	h.mustRun(t, "db")
	h.mustTell(t, "db", "Normal", "PodsReplaced", fmt.Sprint(count))
	seen := watched.end()
	t.Logf("of %d Pods at least %d were ready at any time", count, seen.least)
	seen.checkReplaced(t)
	var deleted []string
	for _, l := range from.Requests(t, kit.By(kit.HabitatUser), kit.In(h.namespace), isDeletion) {
		if deleted = append(deleted, l.Name()); !isPrecise(l.Body) || !l.IsAccepted() {
			t.Errorf("want a deletion of this very Pod, got %s", l)
		}
	}
	if slices.Sort(deleted); !slices.Equal(deleted, slices.Sorted(maps.Keys(first))) {
		t.Errorf("deleted were %v, want each of the outdated Pods once", deleted)
	}
}

// If only some Pods are outdated, only these are replaced. To get such Pods, a user
// edits the Application while the controllers are stopped, and deletes one Pod.
func TestOnDeleteLeavesOthers(t *testing.T) { // not parallel: it stops the controllers
	const image = "registry.test/hab/db:2"
	h := newHome(t)
	h.run(t, service("db", 3, object{"updateStrategy": "OnDelete", "service": with("db", "leader", nil)}))
	h.awaitCalm(t)
	kit.Must(t, h.installation.StopHabitat())
	manifest, _ := kit.Field(h.get(t, kit.ConfigMaps, "habitat-db"), "data", application.ManifestKey).(string)
	edited := kit.JSON(t, object{"data": object{application.ManifestKey: strings.ReplaceAll(manifest, "registry.test/hab/db:1", image)}})
	h.patch(t, kit.ConfigMaps, "habitat-db", "user", string(edited))
	h.edit(t, "db", fmt.Sprintf(`{"image": %q}`, image))
	h.eventuallyField(t, image, kit.StatefulSets, "db", "spec", "template", "spec", "containers", 0, "image")
	kit.Eventually(t, func() string {
		set := h.get(t, kit.StatefulSets, "db")
		if kit.Field(set, "status", "observedGeneration") != set.GetGeneration() {
			return "the StatefulSet's controller has not seen the new template"
		}
		return ""
	})
	before := h.pods(t, "db")
	h.deletePod(t, before["db-1"])
	kit.Eventually(t, func() string {
		if pod, ok := h.pods(t, "db")["db-1"]; !ok || pod.UID == before["db-1"].UID || !isReady(&pod) {
			return "Pod db-1 was deleted, and is not back"
		}
		return ""
	})
	mixed := uids(h.pods(t, "db"))
	kit.Must(t, h.installation.StartHabitat(t.Context()))

	h.mustRoll(t, "db", image)
	h.mustRun(t, "db")
	h.awaitCalm(t)
	for name, uid := range uids(h.pods(t, "db")) {
		if kept := uid == mixed[name]; kept != (name == "db-1") {
			t.Errorf("Pod %s was kept: %v", name, kept)
		}
	}
}

// "kubectl scale of the StatefulSet is reverted", and the Habitat shows what was
// changed, by which client, and where to change it instead.
func TestScale(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.run(t, service("web", 2, nil))
	h.kubectl(t, "scale", "statefulset", "web", "--replicas=5")
	h.eventuallyField(t, 2, kit.StatefulSets, "web", "spec", "replicas")
	h.mustTell(t, "web", "Warning", "Overwritten", "StatefulSet/web", "spec.replicas", "kubectl", "make changes in the Habitat")
	h.eventuallyField(t, "[spec.replicas]", habitats, "web", "status", "overwritten", "fields")
	h.eventuallyField(t, "StatefulSet/web", habitats, "web", "status", "overwritten", "object")
	h.eventuallyField(t, "kubectl", habitats, "web", "status", "overwritten", "by")
	h.mustRun(t, "web")
	h.eventuallyField(t, "2/2", habitats, "web", "status", "ready")
	// A change of the Habitat is no edit to revert.
	notes := len(h.events(t, habitat.Kind, "web", "Overwritten"))
	h.edit(t, "web", `{"count": 3}`)
	h.eventuallyField(t, 3, kit.StatefulSets, "web", "spec", "replicas")
	h.mustRun(t, "web")
	h.eventuallyField(t, "3/3", habitats, "web", "status", "ready")
	h.awaitCalm(t)
	if got := h.events(t, habitat.Kind, "web", "Overwritten"); len(got) != notes {
		t.Errorf("an edit of the Habitat is told as one that is set back: %q", got)
	}
}

// A field that is not generated belongs to the client that sets it: it stays, also when
// the Habitat changes.
func TestUnobservedStays(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.run(t, service("web", 1, nil))
	h.patch(t, kit.StatefulSets, "web", "somebody", `{"metadata": {"annotations": {"note": "mine"}}, "spec": {"minReadySeconds": 1, "template": {"spec": {"terminationGracePeriodSeconds": 7, "tolerations": [{"operator": "Exists"}]}}}}`)
	h.kubectl(t, "set", "resources", "statefulset", "web", "--limits=cpu=100m")
	h.edit(t, "web", `{"image": "registry.test/hab/web:2"}`)
	h.mustRoll(t, "web", "registry.test/hab/web:2")
	live := h.get(t, kit.StatefulSets, "web")
	for want, path := range map[string][]any{
		"mine":                    {"metadata", "annotations", "note"},
		"1":                       {"spec", "minReadySeconds"},
		"7":                       {"spec", "template", "spec", "terminationGracePeriodSeconds"},
		"Exists":                  {"spec", "template", "spec", "tolerations", 0, "operator"},
		"map[cpu:100m]":           {"spec", "template", "spec", "containers", 0, "resources", "limits"},
		"registry.test/hab/web:2": {"spec", "template", "spec", "containers", 0, "image"},
	} {
		if got := kit.Field(live, path...); fmt.Sprint(got) != want {
			t.Errorf("%v is %v, want %s", path, got, want)
		}
	}
}

// "kubectl edit hab" flows through: the workload has the replicas, image, environment,
// binds and Secrets as the test computes them from the Habitat, for both versions.
func TestEdit(t *testing.T) {
	kit.Long(t, "each field is edited")
	t.Parallel()
	h := newHome(t)
	h.secret(t, "web-config", "user.toml")
	h.secret(t, "ring-20240131235959", "ring-key")
	h.run(t, service("web", 1, object{"env": []any{object{"name": "A", "value": "1"}}}), old("flat", 1))
	edits := []struct{ name, patch string }{
		{"web", `{"count": 3}`},
		{"web", `{"image": "registry.test/hab/web:2"}`},
		{"web", `{"env": [{"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}, {"name": "A", "value": "2"}]}`},
		{"web", `{"service": {"bind": [{"name": "db", "service": "pg", "group": "default"}]}}`},
		{"web", `{"service": {"configSecretName": "web-config", "ringSecretName": "ring-20240131235959"}}`},
		{"web", `{"service": {"group": "blue", "channel": "unstable", "topology": "leader", "bind": []}}`},
		{"web", `{"updateStrategy": "OnDelete"}`},
		{"web", `{"updateStrategy": null}`},
		{"web", `{"env": null, "service": {"configSecretName": null, "ringSecretName": null, "bind": null, "group": null}}`},
		{"flat", `{"count": 2, "env": [{"name": "C", "value": "3"}], "service": {"configSecretName": "web-config"}}`},
		{"flat", `{"count": 0, "image": "registry.test/hab/flat:2", "env": [], "service": {"configSecretName": ""}}`},
	}
	for _, edit := range edits {
		patch := `{"spec": ` + edit.patch + `}`
		if edit.name == "web" {
			patch = `{"spec": {"v1beta2": ` + edit.patch + `}}`
		}
		h.kubectl(t, "patch", "hab", edit.name, "--type=merge", "--patch", patch)
		h.mustRun(t, edit.name)
		h.mustBeCarriedOut(t, edit.name)
	}
	// And as a user does it, in an editor.
	editor := filepath.Join(t.TempDir(), "editor")
	kit.Must(t, os.WriteFile(editor, []byte("#!/bin/sh\nexec sed -i 's|hab/web:2|hab/web:3|; s|count: 3|count: 4|' \"$1\"\n"), 0o700))
	text, err := h.tryKubectl([]string{"KUBE_EDITOR=" + editor}, "", "edit", "hab", "web")
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	h.mustRun(t, "web")
	h.mustBeCarriedOut(t, "web")
	live := h.get(t, kit.StatefulSets, "web")
	if imageOf(live) != "registry.test/hab/web:3" || kit.Field(live, "spec", "replicas") != int64(4) {
		t.Errorf("the edit has become %v times %v", kit.Field(live, "spec", "replicas"), imageOf(live))
	}
}

// mustBeCarriedOut waits until a workload matches the Habitat, without any field of an
// earlier version of it.
func (h home) mustBeCarriedOut(t *testing.T, name string) {
	t.Helper()
	parsed := parsed(t, h.get(t, habitats, name).Object)
	expected := parsed.Workload(habitat.DefaultFilesImage)
	resource := kit.StatefulSets
	if parsed.CustomVersion == habitat.V1beta1 {
		resource = kit.Deployments
	}
	kit.Eventually(t, func() string {
		live := h.get(t, resource, name)
		if live == nil {
			return "there is no workload " + name
		}
		if diff := gocmp.Diff(any(expected), project("", expected, live.Object)); diff != "" {
			return fmt.Sprintf("%s: -want +got\n%s\nof\n%s", name, diff, kit.YAML(t, expected))
		}
		for _, list := range []string{"env", "volumeMounts", "args"} {
			if want, got := len(listOf(expected, list)), len(listOf(live.Object, list)); got != want {
				return fmt.Sprintf("%s has %d %s, want %d", name, got, list, want)
			}
		}
		return ""
	})
}

func listOf(workload object, name string) []any {
	list, _ := kit.At(workload, "spec", "template", "spec", "containers", 0, name).([]any)
	return list
}
