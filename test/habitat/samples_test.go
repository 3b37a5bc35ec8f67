package habitat

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/krake-observer/krake-observer/pkg/habitat"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/kit"
)

// sample is a Habitat with the Secrets that it refers to, and the expected objects.
type sample struct {
	name            string
	input, expected []object
}

// For each sample, the live objects have exactly the expected fields, and nothing is written after that. The samples are
// our own, and those of the folder that the environment names.
func TestSamples(t *testing.T) {
	t.Run("own", func(t *testing.T) {
		t.Parallel()
		playSamples(t, filepath.Join("testdata", "samples"), 7, func(object) {})
	})
	t.Run("reference", func(t *testing.T) {
		t.Parallel()
		folder := os.Getenv("KRAKE_HABITAT_SAMPLES")
		if folder == "" {
			t.Skip("KRAKE_HABITAT_SAMPLES names no folder of samples: only our own were tried")
		}
		playSamples(t, folder, 4, roll)
	})
}

// playSamples tries all samples of a folder in one namespace. differ changes the expected objects of the files.
func playSamples(t *testing.T, folder string, want int, differ func(expected object)) {
	t.Helper()
	h := newHome(t)
	samples := readSamples(t, folder, h.namespace)
	if len(samples) != want {
		t.Fatalf("%d samples in %s, want %d", len(samples), folder, want)
	}
	for _, s := range samples {
		differ(s.expected[0])
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
	if testing.Short() {
		return
	}
	// This is longer than the 30 s after which every Habitat is checked again.
	const quiet = 35 * time.Second
	throughout(t, quiet, func() string {
		if made := worked(t, begin, h.namespace); len(made) > 0 {
			return fmt.Sprintf("nobody has changed anything, and written was %v", made)
		}
		return ""
	})
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

// roll is the one documented difference to the former operator, whose update strategy is
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

// keyOf returns the key field of a list's elements; empty for a list without keys.
func keyOf(list string) string {
	switch list {
	case "containers", "initContainers", "volumes", "env":
		return "name"
	case "volumeMounts":
		return "mountPath"
	}
	return ""
}

// placeOf returns the index in a live list of an element of an expected list, or the
// length of the live list.
func placeOf(list string, expected, live any, index int) int {
	key := keyOf(list)
	items, _ := live.([]any)
	if key == "" {
		return index
	}
	wanted := kit.At(expected, index, key)
	place := slices.IndexFunc(items, func(item any) bool { return kit.At(item, key) == wanted })
	if place < 0 {
		return len(items)
	}
	return place
}
