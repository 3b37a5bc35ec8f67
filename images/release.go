package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"
)

// isVersion matches the name of a release.
var isVersion = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

// releases is where the files of a release are, by its name.
const releases = "https://github.com/krake-observer/krake-observer/releases/download/"

// The manifest by which krew installs the plugin.
type krewManifest struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]string `json:"metadata"`
	Spec       krewSpec          `json:"spec"`
}

type krewSpec struct {
	Version          string         `json:"version"`
	Homepage         string         `json:"homepage"`
	ShortDescription string         `json:"shortDescription"`
	Description      string         `json:"description"`
	Platforms        []krewPlatform `json:"platforms"`
}

type krewPlatform struct {
	Selector krewSelector `json:"selector"`
	URI      string       `json:"uri"`
	SHA256   string       `json:"sha256"`
	Bin      string       `json:"bin"`
}

type krewSelector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

// makePlugins writes an archive with the plugin for each platform, their sums, and the
// manifest for krew.
func (o options) makePlugins(ctx context.Context, scratch string) error {
	manifest := krewManifest{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin", Metadata: map[string]string{"name": "krake"},
		Spec: krewSpec{
			Version: o.release, Homepage: "https://github.com/krake-observer/krake-observer",
			ShortDescription: "Show Applications of Krake Observer, and act on them",
			Description:      "Shows what differs from an Application and who changed it, shows what a file would change, holds repairs, and enrols clusters.",
		},
	}
	var sums strings.Builder
	for _, p := range o.plugins {
		file, sum, err := o.makePlugin(ctx, scratch, p)
		if err != nil {
			return fmt.Errorf("make the plugin for %s/%s: %w", p.os, p.arch, err)
		}
		fmt.Fprintf(&sums, "%s  %s\n", sum, file)
		manifest.Spec.Platforms = append(manifest.Spec.Platforms, krewPlatform{
			Selector: krewSelector{map[string]string{"os": p.os, "arch": p.arch}},
			URI:      releases + o.release + "/" + file, SHA256: sum, Bin: p.program(plugin),
		})
	}
	text, err := yaml.Marshal(manifest)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(o.out, "krake.yaml"), text, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.out, "checksums.txt"), []byte(sums.String()), 0o644)
}

// makePlugin writes the archive for a platform, and returns its name and its sum.
func (o options) makePlugin(ctx context.Context, scratch string, p platform) (file, sum string, err error) {
	folder := filepath.Join(scratch, "plugin-"+p.String())
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", "", err
	}
	if err := build(ctx, o.source, folder, p, plugin); err != nil {
		return "", "", err
	}
	packed, err := packGzip([]entry{
		{name: p.program(plugin), mode: 0o755, from: filepath.Join(folder, p.program(plugin))},
		{name: "LICENSE", mode: 0o644, from: filepath.Join(o.source, "LICENSE")},
	}, o.created)
	if err != nil {
		return "", "", err
	}
	file = fmt.Sprintf("%s-%s-%s.tar.gz", plugin, o.release, p)
	return file, sumOf(packed), os.WriteFile(filepath.Join(o.out, file), packed, 0o644)
}
