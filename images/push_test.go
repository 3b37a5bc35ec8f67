package main

import (
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"sigs.k8s.io/yaml"
)

// anIndex returns an image for two platforms.
func anIndex(t *testing.T) v1.ImageIndex {
	t.Helper()
	index := v1.ImageIndex(empty.Index)
	for _, p := range imagePlatforms {
		image, err := random.Image(100, 1)
		must(t, err)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.os, Architecture: p.arch}}})
	}
	return index
}

// The image in the registry has the recorded digest and both platforms. Nothing is sent unless
// requested.
func TestPush(t *testing.T) {
	index := anIndex(t)
	want, err := index.Digest()
	must(t, err)
	for _, push := range []bool{false, true} {
		server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
		t.Cleanup(server.Close)
		o := options{out: t.TempDir(), name: strings.TrimPrefix(server.URL, "http://") + "/krake-observer/krake-observer:v1.2.3", push: push}
		must(t, o.publish(t.Context(), index))
		if text := read(t, o.out, digestFile); string(text) != want.String()+"\n" {
			t.Errorf("the file says %q, want %s", text, want)
		}
		tag, err := name.NewTag(o.name)
		must(t, err)
		found, err := remote.Index(tag)
		if !push {
			if err == nil {
				t.Error("it was sent, and nobody has asked for it")
			}
			continue
		}
		must(t, err)
		got, err := found.Digest()
		if err != nil || got != want {
			t.Errorf("the registry has %s, want %s: %v", got, want, err)
		}
		if manifest, err := found.IndexManifest(); err != nil || len(manifest.Manifests) != len(imagePlatforms) {
			t.Errorf("the registry has %+v: %v", manifest, err)
		}
	}
}

// The archives of a release match the checksums and krew's manifest, and the plugin in one of
// them starts.
func TestRelease(t *testing.T) {
	here := platforms(t)[0]
	o := options{source: "..", out: t.TempDir(), release: "v1.2.3", plugins: []platform{here}, created: time.Unix(0, 0)}
	must(t, o.makePlugins(t.Context(), t.TempDir()))
	file := "kubectl-krake-v1.2.3-" + here.String() + ".tar.gz"
	sum := sums(t, o.out)[file]
	if text := read(t, o.out, "checksums.txt"); string(text) != sum+"  "+file+"\n" {
		t.Errorf("sums %q, want %s of %s", text, sum, file)
	}
	var manifest krewManifest
	must(t, yaml.UnmarshalStrict(read(t, o.out, "krake.yaml"), &manifest))
	if len(manifest.Spec.Platforms) != 1 {
		t.Fatalf("krew's manifest has platforms %+v", manifest.Spec.Platforms)
	}
	if p := manifest.Spec.Platforms[0]; p.SHA256 != sum || p.URI != releases+"v1.2.3/"+file || p.Bin != plugin || p.Selector.MatchLabels["arch"] != here.arch {
		t.Errorf("krew's manifest has %+v", p)
	}
	headers, files := unpacked(t, unzipped(t, bytes.NewReader(read(t, o.out, file))))
	checkHeaders(t, headers)
	if len(files) != 2 || !strings.Contains(string(files["LICENSE"]), "Apache License") {
		t.Errorf("the archive has %d files", len(files))
	}
	checkStarts(t, plugin, files[plugin], "--context")
}
