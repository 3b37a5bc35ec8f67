package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

// overlays are the choices of the chart.
var overlays = []string{"default", "strict", "platform", "hooks", "guard", "habitat", "hub"}

// writeTestChart writes the chart to a folder, and loads it as Helm does.
func writeTestChart(t *testing.T) (*chart.Chart, string) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), chartName)
	if err := (options{source: "..", release: "v1.2.3"}).writeChart(t.Context(), folder); err != nil {
		t.Fatal(err)
	}
	loaded, err := loader.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	return loaded, folder
}

// template returns the objects that Helm makes of the chart, by kind, namespace and name.
func template(loaded *chart.Chart, values map[string]any) (map[string]any, error) {
	return templateIn("elsewhere", loaded, values)
}

func templateIn(namespace string, loaded *chart.Chart, values map[string]any) (map[string]any, error) {
	release := common.ReleaseOptions{Name: "krake", Namespace: namespace, IsInstall: true}
	all, err := util.ToRenderValues(loaded, values, release, nil)
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(loaded, all)
	if err != nil {
		return nil, err
	}
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, ".yaml") {
			texts = append(texts, files[name])
		}
	}
	return objectsOf(strings.Join(texts, "\n---\n"))
}

func objectsOf(text string) (map[string]any, error) {
	objects := map[string]any{}
	for document := range strings.SplitSeq("\n"+text, "\n---\n") {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			return nil, err
		}
		if len(object) == 0 {
			continue
		}
		metadata, _ := object["metadata"].(map[string]any)
		id := fmt.Sprintf("%v %v/%v", object["kind"], metadata["namespace"], metadata["name"])
		if objects[id] != nil {
			return nil, fmt.Errorf("%s is there twice", id)
		}
		objects[id] = object
	}
	return objects, nil
}

// renderer builds manifests/render once.
var renderer = sync.OnceValues(func() (string, error) {
	build := exec.Command("go", "build", "-ldflags=-w", "-o", "bin/", "./manifests/render")
	build.Dir = ".."
	text, err := build.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, text)
	}
	return filepath.Join("..", "bin", "render"), err
})

// overlay returns the objects of an overlay as kubectl kustomize has them.
func overlay(t *testing.T, name string, flags ...string) map[string]any {
	t.Helper()
	program, err := renderer()
	must(t, err)
	text, err := exec.CommandContext(t.Context(), program, append([]string{"--overlay", name}, flags...)...).Output()
	must(t, err)
	objects, err := objectsOf(string(text))
	must(t, err)
	return objects
}

// Each choice of the chart is its overlay, object by object.
func TestChartIsItsOverlays(t *testing.T) {
	loaded, folder := writeTestChart(t)
	for _, name := range overlays {
		got, err := template(loaded, map[string]any{"overlay": name})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(overlay(t, name), got); diff != "" {
			t.Errorf("%s: -overlay +chart\n%s", name, diff)
		}
		for _, message := range lint.RunAll(folder, map[string]any{"overlay": name}, "elsewhere").Messages {
			if !strings.Contains(message.Error(), "icon is recommended") {
				t.Errorf("helm lint, %s: %s", name, message)
			}
		}
	}
	got, err := template(loaded, map[string]any{"flowSchema": true})
	if err != nil {
		t.Fatal(err)
	}
	want := overlay(t, "flowschema")
	maps.Copy(want, overlay(t, "default")) // which only adds how to pull the image
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("flowschema: -overlay +chart\n%s", diff)
	}
	got, err = template(loaded, map[string]any{"image": "registry.example.org/krake:v1"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(overlay(t, "default", "--image", "registry.example.org/krake:v1"), got); diff != "" {
		t.Errorf("another image: -overlay +chart\n%s", diff)
	}
}

// Values replace the fields of the one component that they name.
func TestValuesOfTheChart(t *testing.T) {
	loaded, _ := writeTestChart(t)
	limits := map[string]any{"limits": map[string]any{"memory": "1Gi"}}
	for _, name := range overlays {
		for _, component := range []string{"agent", "webhook", "habitat"} {
			want := overlay(t, name)
			d, ok := deploymentOf(want, component)
			if !ok {
				continue
			}
			d.spec["replicas"] = float64(0)
			d.container["resources"] = limits
			arguments, _ := d.container["args"].([]any)
			d.container["args"] = append(arguments, "--log-level=debug", "--log-format=text")
			d.container["env"] = []any{map[string]any{"name": "GOMEMLIMIT", "value": "900MiB"}}
			got, err := template(loaded, map[string]any{"overlay": name, component: map[string]any{
				"replicas": 0, "resources": limits, "goMemoryLimit": "900MiB", "extraArgs": []any{"--log-level=debug", "--log-format=text"},
			}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %s: -overlay +chart\n%s", name, component, diff)
			}
		}
	}
}

type testDeployment struct{ spec, container map[string]any }

func deploymentOf(objects map[string]any, component string) (testDeployment, bool) {
	for _, namespace := range []string{"krake-agents", "krake-system"} {
		object, ok := objects["Deployment "+namespace+"/krake-"+component].(map[string]any)
		if !ok {
			continue
		}
		spec, _ := object["spec"].(map[string]any)
		pods, _ := spec["template"].(map[string]any)
		pod, _ := pods["spec"].(map[string]any)
		containers, _ := pod["containers"].([]any)
		container, ok := containers[0].(map[string]any)
		return testDeployment{spec, container}, ok
	}
	return testDeployment{}, false
}

// A value that the chart does not have is refused, and so is a flag that is a matter of the overlay.
func TestValuesOfTheChartAreChecked(t *testing.T) {
	loaded, _ := writeTestChart(t)
	arguments := func(flag string) map[string]any {
		return map[string]any{"agent": map[string]any{"extraArgs": []any{flag}}}
	}
	for why, values := range map[string]map[string]any{
		"no overlay":                 {"overlay": "spoke"},
		"a mistyped value":           {"overlays": "default"},
		"a mistyped field":           {"agent": map[string]any{"replica": 1}},
		"a flag that does not exist": arguments("--verbose"),
		"a flag of the overlay":      arguments("--scope=cluster"),
		"a flag with a role to it":   arguments("--namespace-map=a=b"),
	} {
		if _, err := template(loaded, values); err == nil || !strings.Contains(err.Error(), "don't meet the specifications of the schema") {
			t.Errorf("%s: %v", why, err)
		}
	}
	if _, err := templateIn("krake-system", loaded, nil); err == nil || !strings.Contains(err.Error(), "choose another one for the release") {
		t.Errorf("a namespace of the chart: %v", err)
	}
	for _, flag := range []string{"--log-level=debug", "--guard-break-glass-groups=on-call"} {
		if _, err := template(loaded, arguments(flag)); err != nil {
			t.Error(err)
		}
	}
}

// The archive is the same in each build, and Helm loads it. The registry of the image gets it as Helm
// expects it, if requested.
func TestChartOfARelease(t *testing.T) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for _, push := range []bool{false, true} {
		server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
		t.Cleanup(server.Close)
		host := strings.TrimPrefix(server.URL, "http://")
		o := options{source: "..", out: t.TempDir(), name: host + "/krake-observer/krake-observer:v1.2.3", release: "v1.2.3", push: push, created: time.Unix(0, 0)}
		must(t, o.makeChart(t.Context(), t.TempDir(), digest))
		packed := read(t, o.out, "krake-observer-1.2.3.tgz")
		must(t, o.makeChart(t.Context(), t.TempDir(), digest))
		if again := read(t, o.out, "krake-observer-1.2.3.tgz"); !bytes.Equal(packed, again) {
			t.Error("another build makes another archive")
		}
		loaded, err := loader.LoadArchive(bytes.NewReader(packed))
		must(t, err)
		if got, want := loaded.Values["image"], host+"/krake-observer/krake-observer@"+digest; got != want || loaded.Metadata.Version != "1.2.3" {
			t.Errorf("version %s with image %v, want %s", loaded.Metadata.Version, got, want)
		}
		tag, err := name.NewTag(host + "/krake-observer/charts/krake-observer:1.2.3")
		must(t, err)
		found, err := remote.Image(tag)
		if !push {
			if err == nil {
				t.Error("it was sent without --push")
			}
			continue
		}
		must(t, err)
		manifest, err := found.Manifest()
		must(t, err)
		if manifest.Config.MediaType != chartConfigType || len(manifest.Layers) != 1 || manifest.Layers[0].MediaType != chartContentType {
			t.Errorf("the registry has %+v", manifest)
		}
		layers, err := found.Layers()
		must(t, err)
		content, err := layers[0].Compressed()
		must(t, err)
		if stored, err := io.ReadAll(content); err != nil || !bytes.Equal(stored, packed) {
			t.Errorf("the registry has another archive: %v", err)
		}
		var metadata chart.Metadata
		config, err := found.RawConfigFile()
		must(t, err)
		if must(t, json.Unmarshal(config, &metadata)); metadata.Name != chartName || metadata.Version != "1.2.3" {
			t.Errorf("the registry has %s", config)
		}
	}
}
