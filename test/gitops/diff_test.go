package gitops

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/ssa"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// file is an Application in Git, for a namespace of its own.
func file(t *testing.T) (*unstructured.Unstructured, kit.App) {
	t.Helper()
	cm := kit.Application(hub.NewNamespace(t, "gitops"), "web", song,
		kit.Schema("{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME-song}, data: {title: null}}"))
	return objectOf(t, cm), hub.App(cm.Namespace, cm.Name)
}

// newTitle is another version of a file.
func newTitle(t *testing.T, file *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	changed := file.DeepCopy()
	manifest := strings.NewReplacer("NAME", "web", "Octopus's Garden", "Piggies").Replace(song)
	kit.Must(t, unstructured.SetNestedField(changed.Object, manifest, "data", "spec.manifest"))
	return changed
}

// settled waits until the agent has written status, inventory and finalizer, and has
// repaired a drift, and returns the live Application.
func settled(t *testing.T, app kit.App) *unstructured.Unstructured {
	t.Helper()
	app.MustBe(t, application.StateRunning)
	hub.Change(t, kit.ConfigMaps, app.Namespace, app.Name+"-song", `{"data": {"title": "Yesterday"}}`)
	kit.Eventually(t, func() string {
		read := app.Read(t)
		if read == nil || len(read.Status.Drifts) == 0 || read.Status.Drifts[0].Repaired == "" {
			return "no repair is in the status"
		}
		return ""
	})
	live := hub.Get(t, kit.ConfigMaps, app.Namespace, app.Name)
	for _, part := range [][]string{{"data", "status"}, {"data", "inventory.local"}, {"metadata", "labels", "krake.dev/state"}} {
		if _, ok, err := unstructured.NestedString(live.Object, part...); !ok || err != nil {
			t.Fatalf("there is no %v", part)
		}
	}
	if !slices.Contains(live.GetFinalizers(), application.Finalizer("local")) {
		t.Fatal("there is no finalizer")
	}
	return live
}

// After admission and the writes of the agent, Argo CD finds no difference between the
// file and the Application. No rule ignores anything, and each of its ways to compare is
// tried. To sync it again changes nothing. A change of the file is a difference.
func TestArgoFindsNoDifference(t *testing.T) {
	engine := newArgo(t)
	for name, serverSide := range map[string]bool{"client-side apply": false, "server-side apply": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, app := file(t)
			engine.sync(t, file, serverSide)
			live := settled(t, app)
			changed := newTitle(t, file)
			ways := []string{"server-side", "three-way"}
			if serverSide {
				ways = []string{"server-side", "structured merge"}
			}
			for _, way := range ways {
				if found := engine.difference(t, way, file, live); found != "" {
					t.Errorf("%s: %s", way, found)
				}
				if engine.difference(t, way, changed, live) == "" {
					t.Errorf("%s: a changed file is no difference", way)
				}
			}
			engine.sync(t, file, serverSide)
			checkUntouched(t, live)

			app.Annotate(t, "hold-until", time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
			held := hub.Get(t, kit.ConfigMaps, app.Namespace, app.Name)
			for _, way := range ways {
				if found := engine.difference(t, way, file, held); found != "" {
					t.Errorf("%s: a hold is a difference: %s", way, found)
				}
			}
		})
	}
}

// The same for Flux: each apply after the first one finds nothing to change.
func TestFluxFindsNoDifference(t *testing.T) {
	t.Parallel()
	engine := newFlux(t)
	file, app := file(t)
	if got := engine.sync(t, file); got != ssa.CreatedAction {
		t.Errorf("the first apply: %s", got)
	}
	live := settled(t, app)
	engine.mustFindNoDrift(t, file)
	if got := engine.sync(t, file); got != ssa.UnchangedAction {
		t.Errorf("the second apply: %s", got)
	}
	checkUntouched(t, live)
	if got := engine.sync(t, newTitle(t, file)); got != ssa.ConfiguredAction {
		t.Errorf("the apply of a changed file: %s", got)
	}
}

// An Application of kubectl apply that Flux takes over keeps its status, and is
// unchanged from the second apply on.
func TestFluxTakesOver(t *testing.T) {
	t.Parallel()
	engine := newFlux(t)
	file, app := file(t)
	hub.Apply(t, kit.YAML(t, file.Object))
	before := settled(t, app)
	if got := engine.sync(t, file); got != ssa.ConfiguredAction {
		t.Errorf("the first apply: %s", got)
	}
	if got := engine.sync(t, file); got != ssa.UnchangedAction {
		t.Errorf("the second apply: %s", got)
	}
	after := hub.Get(t, kit.ConfigMaps, app.Namespace, app.Name)
	if diff := cmp.Diff(before.Object["data"], after.Object["data"]); diff != "" {
		t.Errorf("the data (-before +after):\n%s", diff)
	}
}

// A hold of kubectl krake lasts beside Flux. What kubectl itself has changed lasts until the next
// apply, and with the annotation ssa: Merge in the file as well.
func TestHoldsBesideFlux(t *testing.T) {
	engine := newFlux(t)
	for name, c := range map[string]struct {
		merge, plugin, lasts bool
	}{
		"kubectl krake hold":           {plugin: true, lasts: true},
		"kubectl annotate":             {},
		"kubectl annotate, with Merge": {merge: true, lasts: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, app := file(t)
			if c.merge {
				annotations := file.GetAnnotations()
				annotations[fluxGroup+"/ssa"] = "Merge"
				file.SetAnnotations(annotations)
			}
			engine.sync(t, file)
			settled(t, app)
			hub.Change(t, kit.ConfigMaps, app.Namespace, app.Name, `{"metadata": {"annotations": {"unrelated": "x"}}}`)
			if c.plugin {
				plugin := exec.CommandContext(t.Context(), filepath.Join(hub.Dir(), "installation", "kubectl-krake"),
					"hold", "web", "--for=1h", "--namespace", app.Namespace, "--kubeconfig", hub.Kubeconfig())
				if text, err := plugin.CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, text)
				}
			} else {
				hub.Kubectl(t, "annotate", "configmap", "web", "--namespace", app.Namespace, "krake.dev/hold-until="+time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
			}
			engine.sync(t, file)
			annotations := app.Stored(t).Annotations
			if _, held := annotations["krake.dev/hold-until"]; held != c.lasts {
				t.Errorf("held: %t, want %t", held, c.lasts)
			}
			if annotations["unrelated"] != "x" {
				t.Error("an annotation of another client is gone")
			}
		})
	}
}

// checkUntouched fails if an Application has changed since.
func checkUntouched(t *testing.T, since *unstructured.Unstructured) {
	t.Helper()
	now := hub.Get(t, kit.ConfigMaps, since.GetNamespace(), since.GetName())
	if diff := cmp.Diff(since.Object, now.Object); diff != "" {
		t.Errorf("a second apply changes the Application (-before +after):\n%s", diff)
	}
}
