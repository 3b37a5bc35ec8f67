package habitat

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/habitat"
	"github.com/krake-observer/krake-observer/test/kit"
)

var (
	habitats = schema.GroupVersionResource{Group: habitat.Group, Version: habitat.Version, Resource: habitat.Plural}
	claims   = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
)

type object = map[string]any

// home is a namespace with Habitats.
type home struct {
	*plane

	namespace string
}

// newHome creates a namespace for one test.
func newHome(t *testing.T) home {
	t.Helper()
	return shared.home(t, kit.UniqueName("habitat"))
}

func (p *plane) home(t *testing.T, namespace string) home {
	t.Helper()
	p.CreateNamespace(t, namespace)
	h := home{p, namespace}
	h.kubectl(t, "create", "rolebinding", "krake-habitat-secrets", "--clusterrole=krake-habitat-secrets", "--serviceaccount=krake-system:krake-habitat")
	return h
}

// service returns a Habitat of the current version, with more fields than count, image
// and service.
func service(name string, count int, more object) object {
	spec := object{"count": int64(count), "image": "registry.test/hab/" + name + ":1", "service": object{"name": name, "topology": "standalone"}}
	maps.Copy(spec, more)
	return object{
		"apiVersion": habitat.APIVersion, "kind": habitat.Kind, "metadata": object{"name": name},
		"customVersion": habitat.V1beta2, "spec": object{"v1beta2": spec},
	}
}

// old returns a Habitat of the deprecated version.
func old(name string, count int) object {
	return object{
		"apiVersion": habitat.APIVersion, "kind": habitat.Kind, "metadata": object{"name": name}, "customVersion": habitat.V1beta1,
		"spec": object{"count": int64(count), "image": "registry.test/hab/" + name + ":1", "service": object{"name": name, "topology": "standalone"}},
	}
}

// with returns the "service" of a Habitat with more fields.
func with(name, topology string, more object) object {
	fields := object{"name": name, "topology": topology}
	maps.Copy(fields, more)
	return fields
}

// tryCreate creates an object in the namespace, and returns its error.
func (h home) tryCreate(ctx context.Context, resource schema.GroupVersionResource, content object) (*unstructured.Unstructured, error) {
	wanted := (&unstructured.Unstructured{Object: content}).DeepCopy()
	wanted.SetNamespace(h.namespace)
	return h.Dynamic.Resource(resource).Namespace(h.namespace).Create(ctx, wanted, metav1.CreateOptions{FieldManager: "user"})
}

func (h home) create(t *testing.T, resource schema.GroupVersionResource, content object) *unstructured.Unstructured {
	t.Helper()
	created, err := h.tryCreate(t.Context(), resource, content)
	kit.Must(t, err)
	return created
}

// run creates Habitats, and waits until they run.
func (h home) run(t *testing.T, contents ...object) {
	t.Helper()
	for _, content := range contents {
		h.create(t, habitats, content)
	}
	for _, content := range contents {
		h.mustRun(t, nameOf(content))
	}
}

// secret creates a Secret. The final check searches for its values.
func (h home) secret(t *testing.T, name string, keys ...string) {
	t.Helper()
	values := object{}
	for _, key := range keys {
		values[key] = fmt.Sprintf("%s-%06d", canary, rand.IntN(1e6))
	}
	h.create(t, kit.Secrets, object{"apiVersion": "v1", "kind": "Secret", "metadata": object{"name": name}, "stringData": values})
}

// get reads an object; nil if it does not exist.
func (h home) get(t *testing.T, resource schema.GroupVersionResource, name string) *unstructured.Unstructured {
	t.Helper()
	return h.Get(t, resource, h.namespace, name)
}

// patch applies a merge patch, as a field manager of that name.
func (h home) patch(t *testing.T, resource schema.GroupVersionResource, name, who, patch string, subresources ...string) {
	t.Helper()
	_, err := h.Dynamic.Resource(resource).Namespace(h.namespace).Patch(t.Context(), name, types.MergePatchType, []byte(patch),
		metav1.PatchOptions{FieldManager: who}, subresources...)
	kit.Must(t, err)
}

// edit changes the spec of a Habitat of the current version.
func (h home) edit(t *testing.T, name, patch string) {
	t.Helper()
	h.patch(t, habitats, name, "user", `{"spec": {"v1beta2": `+patch+`}}`)
}

func (h home) delete(t *testing.T, resource schema.GroupVersionResource, name string) {
	t.Helper()
	kit.Must(t, h.Dynamic.Resource(resource).Namespace(h.namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
}

// mustGo waits until the object does not exist.
func (h home) mustGo(t *testing.T, resource schema.GroupVersionResource, name string) {
	t.Helper()
	kit.Eventually(t, func() string {
		if live := h.get(t, resource, name); live != nil {
			return fmt.Sprintf("%s %s is still there, with %v, deleted at %v", resource.Resource, name, live.GetFinalizers(), live.GetDeletionTimestamp())
		}
		return ""
	})
}

// mustStay fails unless the object still has its UID, and is not being deleted.
func (h home) mustStay(t *testing.T, resource schema.GroupVersionResource, name string, uid types.UID) {
	t.Helper()
	live := h.get(t, resource, name)
	if live == nil || live.GetUID() != uid || live.GetDeletionTimestamp() != nil {
		t.Errorf("%s %s is not there any more as it was: %v", resource.Resource, name, live)
	}
}

// kubectl runs kubectl in the namespace, as the administrator.
func (h home) kubectl(t *testing.T, arguments ...string) string {
	t.Helper()
	return h.Kubectl(t, append([]string{"--namespace", h.namespace}, arguments...)...)
}

func (h home) tryKubectl(environment []string, input string, arguments ...string) (string, error) {
	command := exec.Command(h.Cluster.Kubectl(), append([]string{"--kubeconfig", h.Kubeconfig(), "--namespace", h.namespace}, arguments...)...)
	command.Stdin = strings.NewReader(input)
	command.Env = append(command.Environ(), environment...)
	text, err := command.CombinedOutput()
	return string(text), err
}

// condition returns a condition of a Habitat, or the zero value.
func (h home) condition(t *testing.T, name, kind string) metav1.Condition {
	t.Helper()
	all, _ := kit.Field(h.get(t, habitats, name), "status", "conditions").([]any)
	for _, each := range all {
		if fields, ok := each.(object); ok && fields["type"] == kind {
			text := func(name string) string { value, _ := fields[name].(string); return value }
			return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(text("status")), Reason: text("reason"), Message: text("message")}
		}
	}
	return metav1.Condition{}
}

// mustSay waits until a condition of a Habitat has this status and reason, and returns
// its message.
func (h home) mustSay(t *testing.T, name, kind string, status metav1.ConditionStatus, reason string) (message string) {
	t.Helper()
	kit.Eventually(t, func() string {
		got := h.condition(t, name, kind)
		if message = got.Message; got.Status != status || got.Reason != reason {
			return fmt.Sprintf("condition %s of Habitat %s is %s/%s (%s), want %s/%s", kind, name, got.Status, got.Reason, got.Message, status, reason)
		}
		return ""
	})
	return message
}

// isRunning returns a complaint unless a Habitat reports that its current spec runs.
func (h home) isRunning(t *testing.T, name string) string {
	t.Helper()
	live := h.get(t, habitats, name)
	switch {
	case live == nil:
		return "there is no Habitat " + name
	case kit.Field(live, "status", "state") != "RUNNING" || h.condition(t, name, "Ready").Status != metav1.ConditionTrue:
		return fmt.Sprintf("Habitat %s does not run: %v", name, kit.Field(live, "status"))
	case kit.Field(live, "status", "observedGeneration") != live.GetGeneration():
		return fmt.Sprintf("the status of Habitat %s is of generation %v, want %d", name, kit.Field(live, "status", "observedGeneration"), live.GetGeneration())
	}
	return ""
}

func (h home) mustRun(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		kit.Eventually(t, func() string { return h.isRunning(t, name) })
	}
}

// eventuallyField waits until a field of an object has a value.
func (h home) eventuallyField(t *testing.T, want any, resource schema.GroupVersionResource, name string, path ...any) {
	t.Helper()
	h.EventuallyField(t, want, resource, h.namespace, name, path...)
}

// mustAppear waits until an object exists that does not have this UID.
func (h home) mustAppear(t *testing.T, resource schema.GroupVersionResource, name string, former types.UID) {
	t.Helper()
	kit.Eventually(t, func() string {
		if live := h.get(t, resource, name); live == nil || live.GetUID() == former {
			return fmt.Sprintf("there is no %s %s, or still the former one", resource.Resource, name)
		}
		return ""
	})
}

// events returns the notes of the Events about an object with the reason.
func (h home) events(t *testing.T, kind, name, reason string) []string {
	t.Helper()
	list, err := h.Dynamic.Resource(kit.Events).Namespace(h.namespace).List(context.Background(), metav1.ListOptions{})
	kit.Must(t, err)
	var notes []string
	for _, event := range list.Items {
		if kit.Field(&event, "regarding", "kind") == kind && kit.Field(&event, "regarding", "name") == name && kit.Field(&event, "reason") == reason {
			notes = append(notes, fmt.Sprintf("%v: %v", kit.Field(&event, "type"), kit.Field(&event, "note")))
		}
	}
	return notes
}

// mustTell waits for an Event of a Habitat, of that type, with all of the words.
func (h home) mustTell(t *testing.T, name, kind, reason string, words ...string) {
	t.Helper()
	kit.Eventually(t, func() string { return h.tells(t, name, kind, reason, words...) })
}

// tells returns a complaint unless such an Event exists.
func (h home) tells(t *testing.T, name, kind, reason string, words ...string) string {
	t.Helper()
	notes := h.events(t, habitat.Kind, name, reason)
	for _, note := range notes {
		if strings.HasPrefix(note, kind+": ") && hasAll(note, words) {
			return ""
		}
	}
	const last = 5
	return fmt.Sprintf("no %s Event %s of Habitat %s says %q, the last of %d are %q", kind, reason, name, words, len(notes), notes[max(len(notes)-last, 0):])
}

func hasAll(text string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// pods returns the Pods of a Habitat by name; of all Habitats if the name is empty.
func (h home) pods(t *testing.T, of string) map[string]corev1.Pod {
	t.Helper()
	selector := ofHabitats
	if of != "" {
		selector += ",habitat-name=" + of
	}
	list, err := h.CoreV1().Pods(h.namespace).List(context.Background(), metav1.ListOptions{LabelSelector: selector})
	kit.Must(t, err)
	pods := map[string]corev1.Pod{}
	for _, pod := range list.Items {
		pods[pod.Name] = pod
	}
	return pods
}

// uids returns the UIDs of Pods by name.
func uids(pods map[string]corev1.Pod) map[string]types.UID {
	found := map[string]types.UID{}
	for name, pod := range pods {
		found[name] = pod.UID
	}
	return found
}

// await repeats check until it returns no complaint, or the time is over, and returns
// the last complaint.
func await(atMost time.Duration, check func() (complaint string)) string {
	deadline := time.Now().Add(atMost)
	for {
		complaint := check()
		if complaint == "" || time.Now().After(deadline) {
			return complaint
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// throughout repeats check for a time, and fails at its first complaint.
func throughout(t *testing.T, lasts time.Duration, check func() (complaint string)) {
	t.Helper()
	for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if complaint := check(); complaint != "" {
			t.Fatal(complaint)
		}
	}
}
