package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/krake-observer/krake-observer/manifests"
	"github.com/krake-observer/krake-observer/test/cluster"
)

// The rendered output equals that of kubectl for the same folder.
func TestRenderIsWhatKubectlBuilds(t *testing.T) {
	binaries, err := cluster.Build(t.Context(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.CopyFS(folder, manifests.Files); err != nil {
		t.Fatal(err)
	}
	for _, overlay := range []string{"default", "hub", "strict"} {
		want, err := exec.CommandContext(t.Context(), binaries.Kubectl, "kustomize", filepath.Join(folder, "overlays", overlay)).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, want)
		}
		var out strings.Builder
		if err := run([]string{"--overlay", overlay}, &out); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff("# Rendered from manifests/overlays/"+overlay+".\n"+string(want), out.String()); diff != "" {
			t.Errorf("%s (-kubectl +render):\n%s", overlay, diff)
		}
	}
}

func TestImage(t *testing.T) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for _, c := range []struct{ why, given, want string }{
		{"a tag", "example.org/krake:v1", "image: example.org/krake:v1"},
		{"a registry with a port", "localhost:5000/krake:v1", "image: localhost:5000/krake:v1"},
		{"a digest", "example.org/krake@" + digest, "image: example.org/krake@" + digest},
	} {
		var out strings.Builder
		if err := run([]string{"--image", c.given}, &out); err != nil {
			t.Errorf("%s: %v", c.why, err)
			continue
		}
		if n := strings.Count(out.String(), c.want+"\n"); n != 2 {
			t.Errorf("%s: webhook and agent have %q %d times", c.why, c.want, n)
		}
	}
}

// A mistyped argument is an error, and nothing is printed that an administrator might apply.
func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		why       string
		arguments []string
		want      string
	}{
		{"an overlay that there is not", []string{"--overlay", "west"}, "--overlay: manifests/overlays/west is not an overlay"},
		{"an image without a tag would be another one each day", []string{"--image", "example.org/krake"}, "has to be NAME:TAG"},
		{"a digest that is none", []string{"--image", "krake@v1"}, "has to be NAME:TAG"},
		{"an argument", []string{"default"}, "no arguments"},
	} {
		var out strings.Builder
		err := run(c.arguments, &out)
		if err == nil || !strings.Contains(err.Error(), c.want) || out.Len() > 0 {
			t.Errorf("%s: error %v, want %q; %d bytes are printed", c.why, err, c.want, out.Len())
		}
	}
}

// The chart has each form of an object once, with its condition. Images compares it with the overlays
// as Helm renders it.
func TestChart(t *testing.T) {
	folder := t.TempDir()
	if err := run([]string{"--chart", folder, "--chart-version", "v1.2.3", "--image", "example.org/krake:v1"}, io.Discard); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string][]string{
		"Chart.yaml":               {"version: 1.2.3\n"},
		"values.yaml":              {"image: example.org/krake:v1\n", "\nhabitat:\n"},
		"values.schema.json":       {`"platform",`, `"^--(log-format|log-level)(=.*)?$"`},
		"templates/namespace.yaml": {"---\napiVersion: v1\n", "  name: krake-agents\n"},
		"templates/validatingwebhookconfiguration.yaml": {`{{- if has .Values.overlay (list "guard") }}`, "  name: krake-guard\n"},
		"templates/flowschema.yaml":                     {"{{- if .Values.flowSchema }}\n---\n"},
		"templates/deployment.yaml":                     {`{{- if has .Values.overlay (list "habitat") }}`, "image: {{ .Values.image | quote }}\n"},
		"templates/clusterrole.yaml":                    {"  name: krake-webhook-reviews\n"},
	} {
		text, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range want {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s lacks %q", file, part)
			}
		}
		if n := strings.Count(string(text), "  name: krake-webhook-reviews\n"); n > 1 && file == "templates/clusterrole.yaml" {
			t.Errorf("all overlays have the same ClusterRole, and the chart has it %d times", n)
		}
		if strings.Contains(string(text), "-OF-THE-CHART") {
			t.Errorf("%s has a mark that no value replaces", file)
		}
	}
	if err := run([]string{"--chart", folder, "--chart-version", "latest"}, io.Discard); err == nil || !strings.Contains(err.Error(), "--chart-version") {
		t.Errorf("another version: %v", err)
	}
}

// Each extra flag exists, and webhook and agent need not agree about it: no overlay sets it.
func TestExtraFlagsExist(t *testing.T) {
	var texts strings.Builder
	for _, overlay := range chartOverlays() {
		text, err := render(overlay, "")
		if err != nil {
			t.Fatal(err)
		}
		texts.Write(text)
	}
	known := flagsOf("agent")
	for _, flag := range extraFlags {
		if !slices.Contains(known, flag) || strings.Contains(texts.String(), "- --"+flag) {
			t.Errorf("--%s does not exist, or an overlay sets it", flag)
		}
	}
}
