// Package untouched_test creates resources on a real API server, and checks that the
// engine sees no drift without a change.
package untouched_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic"

	"github.com/krake-observer/krake-observer/pkg/apitypes"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
	"github.com/krake-observer/krake-observer/test/kit"
)

// settle is how long the controllers have to change something.
const settle = 4 * time.Second

type object = map[string]any

// resource is a created resource, with the engine's schemas.
type resource struct {
	manifest.Ref

	client  dynamic.ResourceInterface
	desired object
	// refined is the default schema with what is known about the type, and answered adds what
	// the answer to the creation shows beyond that.
	refined, answered schema.Schema
	created           object
}

// Each file of testdata is an application of our own with the known hazards: values
// that the server stores in another form, adds, or drops.
func TestOwnResources(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no resources", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		kit.Must(t, err)
		documents, err := manifest.Decode(text)
		kit.Must(t, err)
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "untouched-"+name)
			var resources []resource
			for _, document := range documents {
				resources = append(resources, w.create(t, document.(object)))
			}
			found := leaveAlone(t, resources)
			if diff := cmp.Diff(shownByTheAnswer()[name], found); diff != "" {
				t.Errorf("what only the answer shows: -want +got\n%s", diff)
			}
		})
	}
}

// shownByTheAnswer has the facts that the types of the API do not have. A server
// replaces a zero that it drops, adds fields to a Pod, and stores the texts of a Secret
// in another field.
func shownByTheAnswer() map[string]map[string][]string {
	const container = "spec.template.spec.containers[0]"
	return map[string]map[string][]string{
		"workloads": {
			"apps/v1 Deployment untouched-workloads/quantities": {container + ".imagePullPolicy", container + ".livenessProbe.timeoutSeconds"},
			"v1 Pod untouched-workloads/bare":                   {"spec.containers[0].volumeMounts", "spec.volumes"},
		},
		"cluster": {
			"v1 Service untouched-cluster/dns":    {"spec.ports[0].nodePort"},
			"v1 Secret untouched-cluster/written": {"stringData"},
		},
	}
}

// leaveAlone compares resources with those on the cluster, at once and until the
// controllers have seen them. It returns the differences to the answers of their
// creation that the types of the API left.
func leaveAlone(t *testing.T, resources []resource) map[string][]string {
	t.Helper()
	left := map[string][]string{}
	for _, r := range resources {
		if paths := r.differences(t); len(paths) > 0 {
			left[r.ID.String()] = paths
		}
	}
	report := drift(t, resources)
	for end := time.Now().Add(settle); time.Now().Before(end); {
		time.Sleep(settle / 10)
		maps.Copy(report, drift(t, resources))
	}
	for at, who := range report {
		t.Errorf("%s: %s", at, who)
	}
	return left
}

// create returns the resource as the agent would have it after its creation.
func (w *world) create(t *testing.T, desired object) resource {
	t.Helper()
	observed, err := schema.Default(desired)
	kit.Must(t, err)
	r := resource{Ref: w.place(t, desired), desired: desired}
	r.client = w.client(r.Ref)
	observed, _ = observed.WithoutServerOwned()
	r.refined = apitypes.BuiltIn().Refine(observed, desired)
	live, err := r.client.Create(t.Context(), w.placed(desired, r.Ref), w.options)
	if apierrors.IsAlreadyExists(err) {
		t.Fatalf("%s: another test has created it", r.ID)
	}
	if err != nil {
		t.Fatalf("create %s: %v", r.ID, err)
	}
	r.created = live.Object
	r.desired = r.refined.LateInitialize(desired, live.Object)
	r.answered = r.refined.Accept(r.refined.Forms(r.desired, live.Object))
	return r
}

// differences returns what the types of the API leave different right after the creation.
func (r resource) differences(t *testing.T) []string {
	t.Helper()
	if found := r.answered.Compare(r.desired, r.created); len(found) > 0 {
		t.Errorf("%s differs from the very answer that was accepted: %v", r.ID, found)
	}
	return pathsOf(r.refined.Compare(r.desired, r.created).Drift())
}

func pathsOf(differences schema.Differences) []string {
	var paths []string
	for _, difference := range differences {
		paths = append(paths, difference.Path.String())
	}
	return paths
}
