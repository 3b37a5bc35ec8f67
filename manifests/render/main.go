// Render prints an installation as one file, for kubectl without kustomize:
//
//	go run ./manifests/render > install.yaml
//	go run ./manifests/render --overlay hub --image registry.example.org/krake-observer:v1
//
// It is what kubectl kustomize makes of the folder of that name in overlays. With --chart, it writes
// a Helm chart of the overlays, one of which a value chooses:
//
//	go run ./manifests/render --chart bin/chart --chart-version v1.2.3
package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/manifests"
)

// image is what the manifests call the image.
const image = "krake-observer/krake-observer"

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
}

func run(arguments []string, out io.Writer) error {
	flags := pflag.NewFlagSet("render", pflag.ContinueOnError)
	overlay := flags.String("overlay", "default", "folder in manifests/overlays")
	name := flags.String("image", "", "image in the place of "+image+", as NAME:TAG or NAME@DIGEST")
	folder := flags.String("chart", "", "write a Helm chart to this folder, and print nothing")
	version := flags.String("chart-version", "0.0.0", "version of the chart")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q: no arguments are accepted, only flags", flags.Arg(0))
	}
	if *folder != "" {
		return writeChart(*folder, *name, *version)
	}
	text, err := render(*overlay, *name)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "# Rendered from manifests/overlays/%s.\n%s", *overlay, text)
	return err
}

// render builds an overlay, with another image if one is named.
func render(overlay, name string) ([]byte, error) {
	const root = "/"
	folder := path.Join("overlays", overlay)
	if _, err := fs.Stat(manifests.Files, path.Join(folder, "kustomization.yaml")); err != nil {
		return nil, fmt.Errorf("--overlay: manifests/%s is not an overlay: %w", folder, err)
	}
	files, err := inMemory()
	if err != nil {
		return nil, err
	}
	kustomization := types.Kustomization{Resources: []string{folder}}
	if name != "" {
		replaced, err := parseImage(name)
		if err != nil {
			return nil, err
		}
		kustomization.Images = []types.Image{replaced}
	}
	text, err := yaml.Marshal(kustomization)
	if err != nil {
		return nil, err
	}
	if err := files.WriteFile(root+"kustomization.yaml", text); err != nil {
		return nil, err
	}
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy // namespaces first, as kubectl kustomize has it
	built, err := krusty.MakeKustomizer(options).Run(files, root)
	if err != nil {
		return nil, fmt.Errorf("build manifests/%s: %w", folder, err)
	}
	return built.AsYaml()
}

// inMemory returns the embedded files. They need no checkout, so the result does not depend
// on the working directory.
func inMemory() (filesys.FileSystem, error) {
	files := filesys.MakeFsInMemory()
	err := fs.WalkDir(manifests.Files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := manifests.Files.ReadFile(name)
		if err != nil {
			return err
		}
		return files.WriteFile("/"+name, text)
	})
	return files, err
}

// parseImage reads NAME:TAG or NAME@DIGEST. A port is no tag.
func parseImage(text string) (types.Image, error) {
	if name, digest, ok := strings.Cut(text, "@"); ok && name != "" && strings.HasPrefix(digest, "sha256:") {
		return types.Image{Name: image, NewName: name, Digest: digest}, nil
	}
	at := strings.LastIndex(text, ":")
	if at <= 0 || at == len(text)-1 || strings.ContainsAny(text[at:], "/@") || strings.Contains(text, "@") {
		return types.Image{}, fmt.Errorf("--image: %q has to be NAME:TAG, or NAME@ and a digest of SHA-256", text)
	}
	return types.Image{Name: image, NewName: text[:at], NewTag: text[at+1:]}, nil
}
