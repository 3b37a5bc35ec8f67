package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// user is the user and the group that the commands run as: not root, and without a name.
const user = "65532:65532"

// archive is the name of the file with the image.
const archive = "krake-observer.oci.tar"

// makeAll builds everything into the folder of the options. Scratch is an empty folder.
func (o options) makeAll(ctx context.Context, scratch string, out io.Writer) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range o.platforms {
		folder := filepath.Join(scratch, p.String())
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
		if err := build(ctx, o.source, folder, p, append(inImage, plugin)...); err != nil {
			return err
		}
		image, err := imageOf(folder, p, o.created)
		if err != nil {
			return fmt.Errorf("make the image for %s/%s: %w", p.os, p.arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.os, Architecture: p.arch}},
		})
		if err := o.finish(folder, p, image); err != nil {
			return err
		}
	}
	if err := o.writeArchive(filepath.Join(scratch, "layout"), index); err != nil {
		return fmt.Errorf("write the image: %w", err)
	}
	if err := o.publish(ctx, index); err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	if o.release != "" {
		if err := errors.Join(o.makePlugins(ctx, scratch), o.makeChart(ctx, scratch, digest.String())); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(out, "%s@%s in %s\n", o.name, digest, filepath.Join(o.out, archive))
	return err
}

// finish writes the files of a platform that are not in the image.
func (o options) finish(folder string, p platform, image v1.Image) error {
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	document, err := billOf(folder, digest.String(), p, o.created)
	if err != nil {
		return fmt.Errorf("list the contents of the image for %s/%s: %w", p.os, p.arch, err)
	}
	if err := os.WriteFile(filepath.Join(o.out, "krake-observer-"+p.String()+".spdx.json"), document, 0o644); err != nil {
		return err
	}
	program, err := os.ReadFile(filepath.Join(folder, plugin))
	if err != nil {
		return err
	}
	name := filepath.Join(o.out, plugin+"-"+p.String())
	if err := os.Remove(name); err != nil && !os.IsNotExist(err) { // it may be running
		return err
	}
	return os.WriteFile(name, program, 0o755)
}

// imageOf makes the image of one platform, of one layer, from the commands in a folder.
func imageOf(folder string, p platform, created time.Time) (v1.Image, error) {
	file := filepath.Join(folder, "layer.tar")
	if err := packFile(file, entriesOf(folder), created); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromFile(file, tarball.WithMediaType(types.OCILayer),
		tarball.WithCompressionLevel(gzip.DefaultCompression), tarball.WithCompressedCaching)
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.ConfigFile(base, &v1.ConfigFile{
		OS: p.os, Architecture: p.arch, Created: v1.Time{Time: created}, RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			User: user, Cmd: []string{"/agent"}, WorkingDir: "/", Env: []string{"PATH=/"},
			Labels: map[string]string{"org.opencontainers.image.title": "krake-observer", "org.opencontainers.image.licenses": license},
		},
	})
	if err != nil {
		return nil, err
	}
	return mutate.Append(image, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: created}, CreatedBy: "go build ./cmd/agent ./cmd/habitat ./cmd/webhook"},
	})
}

// writeArchive writes the index, with its name, as a layout in one file.
func (o options) writeArchive(folder string, index v1.ImageIndex) error {
	images, err := layout.Write(folder, empty.Index)
	if err != nil {
		return err
	}
	if err := images.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"io.containerd.image.name":          o.name,
		"org.opencontainers.image.ref.name": tagOf(o.name),
	})); err != nil {
		return err
	}
	var entries []entry
	err = filepath.WalkDir(folder, func(name string, found fs.DirEntry, err error) error {
		if err != nil || found.IsDir() {
			return err
		}
		relative, err := filepath.Rel(folder, name)
		entries = append(entries, entry{name: filepath.ToSlash(relative), mode: 0o644, from: name})
		return err
	})
	if err != nil {
		return err
	}
	return packFile(filepath.Join(o.out, archive), entries, o.created)
}
