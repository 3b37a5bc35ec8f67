package habitat

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/habitat"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/kit"
)

// sample is a Habitat with the Secrets that it refers to, and the expected objects.
type sample struct {
	name            string
	input, expected []object
}

// tally counts the leaves of all samples.
type tally struct {
	mu                     sync.Mutex
	all, reverted, refused int
}

func (c *tally) add(reverted, refused int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all += reverted + refused
	c.reverted += reverted
	c.refused += refused
}

// "For each sample: the live objects have exactly the expected fields, nothing is
// written after that, and a change of any observed field is reverted with an Event."
// The samples are our own, and those of the reference if the environment names their
// folder: these have 187 observed leaves, 182 of them in StatefulSets.
func TestSamples(t *testing.T) {
	t.Run("own", func(t *testing.T) {
		t.Parallel()
		playSamples(t, filepath.Join("testdata", "samples"), 7, func(object) {})
	})
	t.Run("reference", func(t *testing.T) {
		if testing.Short() {
			t.Skip("make verify runs it: each of 187 leaves drifts")
		}
		t.Parallel()
		folder := os.Getenv("KRAKE_HABITAT_SAMPLES")
		if folder == "" {
			t.Skip("KRAKE_HABITAT_SAMPLES names no folder of samples: only our own were tried")
		}
		if leaves := playSamples(t, folder, 4, roll); leaves != 182+5 {
			t.Errorf("the samples have %d observed leaves, want 187", leaves)
		}
	})
}

// playSamples tries all samples of a folder in one namespace, and returns the number of
// their leaves, with those of the peer file. differ changes the expected objects of the
// files.
func playSamples(t *testing.T, folder string, want int, differ func(expected object)) int {
	t.Helper()
	h := newHome(t)
	samples := readSamples(t, folder, h.namespace)
	if len(samples) != want {
		t.Fatalf("%d samples in %s, want %d", len(samples), folder, want)
	}
	if testing.Short() {
		samples = samples[:1]
	}
	for _, s := range samples {
		differ(s.expected[0])
	}
	for _, s := range samples {
		for _, content := range s.input {
			h.submit(t, content)
		}
	}
	for _, s := range samples {
		h.mustRun(t, s.habitat())
	}
	begin := h.awaitCalm(t)
	for _, s := range samples {
		s.compare(t, h)
	}
	h.checkPeerFile(t)
	// This is longer than the 30 s after which every Habitat is checked again.
	const quiet = 35 * time.Second
	throughout(t, quiet, func() string {
		if made := worked(t, begin, h.namespace); len(made) > 0 {
			return fmt.Sprintf("nobody has changed anything, and written was %v", made)
		}
		return ""
	})
	var count tally
	t.Run("leaves", func(t *testing.T) {
		for _, s := range samples {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				s.tamper(t, h, &count)
			})
		}
		t.Run("peers", func(t *testing.T) {
			t.Parallel()
			tamperPeers(t, h, &count)
		})
	})
	t.Logf("%d leaves: %d were changed and set back, %d the API server does not let anybody change", count.all, count.reverted, count.refused)
	if count.all != count.reverted+count.refused {
		t.Errorf("%d leaves, but %d set back and %d refused", count.all, count.reverted, count.refused)
	}
	return count.all
}

// readSamples reads the samples of a folder, for a namespace.
func readSamples(t *testing.T, folder, namespace string) []sample {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.input.yaml"))
	kit.Must(t, err)
	var samples []sample
	for _, file := range files {
		name := strings.TrimSuffix(file, ".input.yaml")
		samples = append(samples, sample{
			name: filepath.Base(name), input: readObjects(t, file, namespace), expected: readObjects(t, name+".expected.yaml", namespace),
		})
	}
	return samples
}

// roll is the one documented difference to the reference, whose update strategy is
// always OnDelete: Pods are replaced one by one.
func roll(expected object) {
	expected["spec"].(object)["updateStrategy"].(object)["type"] = "RollingUpdate"
}

func readObjects(t *testing.T, file, namespace string) []object {
	t.Helper()
	text, err := os.ReadFile(file)
	kit.Must(t, err)
	documents, err := manifest.Decode(text)
	kit.Must(t, err)
	var objects []object
	for _, document := range documents {
		content := document.(object)
		move(content, namespace)
		objects = append(objects, content)
	}
	return objects
}

// move moves an object, with its references to its own namespace, into another one.
func move(value any, namespace string) {
	switch value := value.(type) {
	case object:
		for name, below := range value {
			if metadata, ok := below.(object); ok && name == "metadata" && metadata["namespace"] != nil {
				metadata["namespace"] = namespace
			}
			move(below, namespace)
		}
	case []any:
		for _, below := range value {
			move(below, namespace)
		}
	}
}

// submit creates a Secret with other values, or a Habitat.
func (h home) submit(t *testing.T, content object) {
	t.Helper()
	switch content["kind"] {
	case "Secret":
		h.secret(t, nameOf(content), slices.Sorted(maps.Keys(content["stringData"].(object)))...)
	case habitat.Kind:
		for _, secret := range parsed(t, content).Secrets() {
			if h.get(t, kit.Secrets, secret.Name) == nil {
				h.secret(t, secret.Name, cmp.Or(secret.Key, "file"))
			}
		}
		h.create(t, habitats, content)
	default:
		t.Fatalf("a sample has a %v", content["kind"])
	}
}

func parsed(t *testing.T, content object) habitat.Habitat {
	t.Helper()
	h, refusals := habitat.Parse(content)
	kit.Must(t, refusals.ToAggregate())
	return h
}

func nameOf(content object) string {
	name, _ := content["metadata"].(object)["name"].(string)
	return name
}

func (s sample) habitat() string {
	for _, content := range s.input {
		if content["kind"] == habitat.Kind {
			return nameOf(content)
		}
	}
	return ""
}

// workload returns the expected workload of the sample's Habitat.
func (s sample) workload() (expected object, resource schema.GroupVersionResource) {
	expected = s.expected[0]
	if expected["kind"] == "Deployment" {
		return expected, kit.Deployments
	}
	return expected, kit.StatefulSets
}

// compare reports expected leaves that differ in the live object, and unexpected list
// elements.
func (s sample) compare(t *testing.T, h home) {
	t.Helper()
	expected, resource := s.workload()
	live := h.get(t, resource, s.habitat())
	if live == nil {
		t.Fatalf("%s: there is no %s", s.name, resource.Resource)
	}
	if diff := gocmp.Diff(any(expected), project("", expected, live.Object)); diff != "" {
		t.Errorf("%s: -want +got\n%s", s.name, diff)
	}
}

// project reduces a live value to the expected fields, and to all elements of the
// expected lists.
func project(name string, expected, live any) any {
	switch expected := expected.(type) {
	case object:
		fields, ok := live.(object)
		if !ok {
			return live
		}
		found := object{}
		for name, below := range expected {
			if value, ok := fields[name]; ok {
				found[name] = project(name, below, value)
			}
		}
		return found
	case []any:
		items, ok := live.([]any)
		if !ok || len(items) != len(expected) {
			return live
		}
		var found []any
		for i, below := range expected {
			found = append(found, project("", below, kit.At(items, placeOf(name, expected, items, i))))
		}
		return found
	}
	return live
}

// checkPeerFile checks the one ConfigMap that all Habitats of a namespace share.
func (h home) checkPeerFile(t *testing.T) {
	t.Helper()
	file := h.get(t, kit.ConfigMaps, habitat.PeerFile)
	if file == nil {
		t.Fatal("there is no peer file")
	}
	if got := kit.Field(file, "metadata", "labels", "habitat"); got != "true" {
		t.Errorf("label habitat of the peer file is %v, want true", got)
	}
	running := map[string]bool{}
	for _, pod := range h.pods(t, "") {
		running[pod.Status.PodIP] = true
	}
	peer, _ := kit.Field(file, "data", habitat.PeerFile).(string)
	if data, _ := kit.Field(file, "data").(object); len(data) != 1 || !running[peer] {
		t.Errorf("the peer file has %v, want the address of one of %v", data, running)
	}
}

// tamper changes each observed leaf by hand, one after the other.
func (s sample) tamper(t *testing.T, h home, count *tally) {
	expected, resource := s.workload()
	name := s.habitat()
	uid := h.get(t, resource, name).GetUID()
	var reverted, refused []string
	for i, leaf := range leavesOf(expected) {
		who := fmt.Sprintf("hand-%d", i)
		if told := s.change(t, h, resource, leaf, who); told != nil {
			reverted = append(reverted, leaf.String())
			// client-go repeats a failed request for an Event after 10 s.
			if complaint := await(kit.Timeout, func() string { return h.tells(t, name, "Warning", "Overwritten", told...) }); complaint != "" {
				t.Errorf("%s: after %s: %s", leaf, kit.Timeout, complaint) // later leaves are still tried
			}
		} else {
			refused = append(refused, leaf.String())
		}
	}
	count.add(len(reverted), len(refused))
	if diff := gocmp.Diff(unchangeable(expected), refused); diff != "" {
		t.Errorf("what the API server does not let anybody change: -want +got\n%s", diff)
	}
	t.Logf("%d leaves set back; refused by the API server: %s", len(reverted), strings.Join(refused, " "))
	s.compare(t, h)
	h.mustStay(t, resource, name, uid)
	s.remove(t, h, resource)
}

// remove deletes the workload, which is the only way to change its identity: it is
// created again.
func (s sample) remove(t *testing.T, h home, resource schema.GroupVersionResource) {
	t.Helper()
	uid := h.get(t, resource, s.habitat()).GetUID()
	h.delete(t, resource, s.habitat())
	h.mustAppear(t, resource, s.habitat(), uid)
	h.mustTell(t, s.habitat(), "Warning", "Overwritten", fmt.Sprintf("%v/%s", s.expected[0]["kind"], s.habitat()), "deleted")
	h.mustRun(t, s.habitat())
	s.compare(t, h)
}

// change changes a leaf, and waits until it is repaired. It returns the texts that the
// Event must contain: the path, and the client, unless the API server drops it (the
// removal of a field leaves no trace). It returns nothing if the API server refused the
// change.
func (s sample) change(t *testing.T, h home, resource schema.GroupVersionResource, l leaf, who string) (told []string) {
	t.Helper()
	expected := s.expected[0]
	live := h.get(t, resource, s.habitat())
	before := l.in(expected, live.Object)
	for _, patch := range before.changes(live) {
		after, err := h.Dynamic.Resource(resource).Namespace(h.namespace).Patch(t.Context(), s.habitat(), types.JSONPatchType,
			kit.JSON(t, patch), metav1.PatchOptions{FieldManager: who})
		if err != nil {
			continue
		}
		if l.in(expected, after.Object).value == l.value {
			t.Fatalf("%s was changed, and is still %v", l, l.value)
		}
		kit.Eventually(t, func() string {
			if got := l.in(expected, h.get(t, resource, s.habitat()).Object).value; got != l.value {
				return fmt.Sprintf("%s of %s is %v, want %v", l, s.habitat(), got, l.value)
			}
			return ""
		})
		if kit.At(after.Object, before.path...) == nil {
			who = "by another client"
		}
		return []string{before.told(), who}
	}
	return nil
}

// tamperPeers does the same with the peer file. Its data are not observed: see TestPeers.
func tamperPeers(t *testing.T, h home, count *tally) {
	expected, _ := habitat.PeerConfigMap(h.namespace)
	delete(expected, "data")
	s := sample{expected: []object{expected}, input: []object{{"kind": habitat.Kind, "metadata": object{"name": habitat.PeerFile}}}}
	var reverted, refused []string
	for _, leaf := range leavesOf(expected) {
		if s.change(t, h, kit.ConfigMaps, leaf, "hand") != nil {
			reverted = append(reverted, leaf.String())
		} else {
			refused = append(refused, leaf.String())
		}
	}
	if diff := gocmp.Diff([]string{"metadata.labels.habitat"}, reverted); diff != "" {
		t.Errorf("what can be changed of the peer file: -want +got\n%s", diff)
	}
	count.add(len(reverted), len(refused))
}
