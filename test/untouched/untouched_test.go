// Package untouched_test creates resources on a real API server, leaves them
// alone, and looks if the engine sees drift where nobody has changed anything.
package untouched_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/krake-observer/krake-observer/pkg/apitypes"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/schema"
)

// settle is how long the controllers have to change something.
const settle = 10 * time.Second

type object = map[string]any

// resource is one that was created, with what the engine makes of it.
type resource struct {
	manifest.Ref

	desired object
	// literal is the default schema, refined what is known of the type beside
	// it, answered what the answer to the creation has shown beyond that.
	literal, refined, answered schema.Schema
	created                    object
}

// Each file of testdata is an application of our own, with the hazards that are
// known: what the server writes otherwise, fills in, or drops.
func TestOwnResources(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no resources", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		documents, err := manifest.Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		t.Run(name, func(t *testing.T) { checkUntouched(t, name, documents) })
	}
}

// The resources of the world are not part of this repository: they are read
// from the file that the environment names.
func TestRealResources(t *testing.T) {
	file := os.Getenv("KRAKE_REAL_MANIFESTS")
	if file == "" {
		t.Skip("KRAKE_REAL_MANIFESTS names no file of real-world resources: only our own were tried")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	documents, err := manifest.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	for i, application := range documents[0].(object)["applications"].([]any) {
		fields := application.(object)
		t.Run(fields["app"].(string), func(t *testing.T) {
			checkUntouched(t, fmt.Sprintf("real-%d", i), fields["resources"].([]any))
		})
	}
}

// checkUntouched creates the resources of an application and compares them with
// what is on the cluster, at once and when the controllers have seen them.
func checkUntouched(t *testing.T, namespace string, documents []any) {
	t.Parallel()
	w := newWorld(t, "untouched-"+namespace)
	var resources []resource
	for _, document := range documents {
		resources = append(resources, w.create(t, document.(object)))
	}
	report := w.drift(t, resources)
	for end := time.Now().Add(settle); time.Now().Before(end); {
		time.Sleep(settle / 10)
		maps.Copy(report, w.drift(t, resources))
	}
	for at, who := range report {
		t.Errorf("%s: %s", at, who)
	}
}

// create gives the resource as the agent would have it after its creation.
func (w *world) create(t *testing.T, desired object) resource {
	t.Helper()
	observed, err := schema.Default(desired)
	if err != nil {
		t.Fatal(err)
	}
	r := resource{Ref: w.place(t, desired), desired: desired, literal: observed}
	observed, _ = observed.WithoutServerOwned()
	r.refined = apitypes.BuiltIn().Refine(observed, desired)
	live, err := w.client(r.Ref).Create(t.Context(), w.placed(desired, r.Ref), w.options)
	if apierrors.IsAlreadyExists(err) {
		t.Fatalf("%s: another test has created it", r.ID)
	}
	if err != nil {
		t.Fatalf("create %s: %v", r.ID, err)
	}
	r.created = live.Object
	r.desired = r.refined.LateInitialize(desired, live.Object)
	r.answered = r.refined.Accept(r.refined.Forms(r.desired, live.Object))
	w.count(t, r)
	return r
}

// count tells how many differences each kind of knowledge leaves right after the creation.
func (w *world) count(t *testing.T, r resource) {
	t.Helper()
	literal := r.literal.Compare(r.desired, r.created).Drift()
	refined := r.refined.Compare(r.desired, r.created).Drift()
	if len(literal) > 0 {
		t.Logf("%s: literally %d differences, with the types of the API %d %s", r.ID, len(literal), len(refined), pathsOf(refined))
	}
	if diff := cmp.Diff(0, len(r.answered.Compare(r.desired, r.created))); diff != "" {
		t.Errorf("%s differs from the very answer that was accepted: %v", r.ID, r.answered.Compare(r.desired, r.created))
	}
}

func pathsOf(differences schema.Differences) []string {
	var paths []string
	for _, difference := range differences {
		paths = append(paths, difference.Path.String())
	}
	return paths
}
