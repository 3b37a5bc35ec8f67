package ha

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
)

//go:embed former
var former string

const (
	mixed = 6 // Applications
	// patience is for the repair of a drift, in which the acting agent may be replaced.
	patience = 2 * time.Minute
)

// In an upgrade and in a downgrade, with replicas of both versions at once, every drift is
// reverted. Nothing else is written to an object, and Applications can be created and changed.
func TestBothVersionsTogether(t *testing.T) {
	t.Parallel() // it has a plane of its own
	checkout := checkoutOf(t, strings.TrimSpace(former))
	plane, err := kit.StartPlane(t.Context(), cluster.Options{PretendKubelet: true})
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, plane.Stop()) })
	installed, err := installation.InstallWith(t.Context(), plane.Cluster, installation.Options{Replicas: agents, Agents: agents, Source: checkout}, os.Stderr)
	kit.Must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			kit.ShowLog(installed.Logs()...)
		}
	})
	w := &mixture{hub: plane, namespace: plane.NewNamespaceOfApps(t, "skew")}
	for range mixed {
		w.create(t)
	}
	w.mark = plane.Mark(t)
	drifting, stop := context.WithCancel(t.Context())
	var drifter sync.WaitGroup
	drifter.Go(func() { w.drift(drifting) })
	webhook := func(index int) error {
		return errors.Join(installed.StopWebhook(index), installed.StartWebhook(t.Context()))
	}
	agent := func(index int) error {
		return errors.Join(installed.StopAgent(index), installed.StartAgent(t.Context()))
	}
	for _, to := range []struct {
		name, source string
		restart      []func(int) error
	}{
		{"upgrade", "", []func(int) error{webhook, agent}},
		{"downgrade", checkout, []func(int) error{agent, webhook}},
	} {
		begin := w.drifts.Load()
		kit.Must(t, installed.Use(t.Context(), to.source))
		kit.Must(t, installed.Apply(t.Context()))
		for _, restart := range to.restart {
			for index := range agents {
				kit.Must(t, restart(index))
				w.create(t)
				w.change(t)
			}
		}
		t.Logf("%s: %d drifts", to.name, w.drifts.Load()-begin)
	}
	stop()
	drifter.Wait()
	w.check(t)
}

// mixture has the Applications, and what other clients did to their objects.
type mixture struct {
	hub       *kit.Plane
	namespace string
	names     []string
	mark      kit.Mark

	drifts   atomic.Int64
	unhealed []error
}

const mixedManifest = `
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME-settings}
data: {colour: blue, size: "1"}
---
apiVersion: v1
kind: Service
metadata: {name: NAME}
spec:
  selector: {app: NAME}
  ports: [{port: 80}]
`

// create creates an Application, and waits until it runs.
func (w *mixture) create(t *testing.T) {
	t.Helper()
	name := fmt.Sprintf("app-%d", len(w.names))
	w.hub.CreateApp(t, kit.Application(w.namespace, name, strings.ReplaceAll(mixedManifest, "NAME", name)))
	w.hub.App(w.namespace, name).MustBe(t, application.StateRunning)
	w.names = append(w.names, name)
}

// change changes a value that is not observed elsewhere, by the manifest of the last Application.
func (w *mixture) change(t *testing.T) {
	t.Helper()
	name := w.names[len(w.names)-1]
	text := strings.ReplaceAll(strings.Replace(mixedManifest, `size: "1"`, `size: "2"`, 1), "NAME", name)
	w.hub.App(w.namespace, name).Patch(t, string(kit.JSON(t, map[string]any{"data": map[string]any{application.ManifestKey: text}})))
	w.hub.EventuallyField(t, "2", kit.ConfigMaps, w.namespace, name+"-settings", "data", "size")
}

// drift changes observed fields of the first objects, one after another, until the context ends. It
// waits until each change is reverted.
func (w *mixture) drift(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		name := fmt.Sprintf("app-%d", n%mixed)
		for _, d := range []struct {
			kind        schema.GroupVersionResource
			name, patch string
			want        string
			path        []any
		}{
			{kit.ConfigMaps, name + "-settings", `{"data": {"colour": "red"}}`, "blue", []any{"data", "colour"}},
			{kit.Services, name, `{"spec": {"selector": {"app": "other"}}}`, name, []any{"spec", "selector", "app"}},
		} {
			err := w.hub.TryChange(context.WithoutCancel(ctx), d.kind, w.namespace, d.name, d.patch)
			if err == nil {
				w.drifts.Add(1)
				err = wait.PollUntilContextTimeout(context.WithoutCancel(ctx), 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
					live, err := w.hub.Find(ctx, d.kind, w.namespace, d.name)
					return err == nil && kit.Field(live, d.path...) == d.want, nil
				})
			}
			if err != nil {
				w.unhealed = append(w.unhealed, fmt.Errorf("drift of %s: %w", d.name, err))
			}
		}
	}
}

// check looks at all that the agents wrote to objects.
func (w *mixture) check(t *testing.T) {
	t.Helper()
	repairs := map[string]int{}
	for _, r := range w.mark.Requests(t, kit.In(w.namespace), kit.By(kit.LocalAgent), kit.Request.IsWork, kit.Request.IsAccepted) {
		switch {
		case r.Object.Resource == "events", slices.Contains(w.names, r.Name()) && r.Object.Resource == "configmaps":
		case r.Verb == "create":
			repairs["created"]++
		case r.Verb != "patch":
			t.Errorf("neither a creation nor a repair: %s", r)
		default:
			for _, path := range r.PatchPaths(t) {
				repairs[path]++
			}
		}
	}
	drifts := int(w.drifts.Load())
	t.Logf("%d drifts; the agents wrote %v", drifts, repairs)
	for _, err := range w.unhealed {
		t.Error(err)
	}
	for _, path := range slices.Sorted(maps.Keys(repairs)) {
		if !slices.Contains([]string{"created", "/data/colour", "/data/size", "/spec/selector/app"}, path) {
			t.Errorf("%d writes of %s, which no other client has changed", repairs[path], path)
		}
	}
	if repaired := repairs["/data/colour"] + repairs["/spec/selector/app"]; repaired != drifts {
		t.Errorf("%d repairs for %d drifts", repaired, drifts)
	}
}

// checkoutOf returns the files of a commit. It skips the test if the history does not have it.
func checkoutOf(t *testing.T, commit string) string {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "git", "rev-parse", "--show-toplevel").Output()
	if err == nil {
		err = exec.CommandContext(t.Context(), "git", "-C", strings.TrimSpace(string(root)), "cat-file", "-e", commit+"^{commit}").Run()
	}
	if err != nil {
		t.Skipf("THE FORMER VERSION IS NOT TESTED: the history does not have commit %s: fetch it with git fetch --unshallow", commit)
	}
	folder := t.TempDir()
	archive := filepath.Join(folder, "former.tar")
	runIn(t.Context(), t, strings.TrimSpace(string(root)), "git", "archive", "--output", archive, commit)
	runIn(t.Context(), t, folder, "tar", "-xf", archive)
	return folder
}

func runIn(ctx context.Context, t *testing.T, folder, name string, arguments ...string) {
	t.Helper()
	command := exec.CommandContext(ctx, name, arguments...)
	command.Dir = folder
	if text, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(arguments, " "), err, text)
	}
}
