package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"sigs.k8s.io/yaml"
)

// chartName is the name of the Helm chart, and of its folder in the archive.
const chartName = "krake-observer"

// makeChart writes the archive of the Helm chart for the image of this digest. With --push it also
// sends it to the registry of the image.
func (o options) makeChart(ctx context.Context, scratch, digest string) error {
	tag, err := name.NewTag(o.name)
	if err != nil {
		return fmt.Errorf("--name: %w", err)
	}
	folder := filepath.Join(scratch, chartName)
	if err := o.writeChart(ctx, folder, "--image", tag.Context().Name()+"@"+digest); err != nil {
		return err
	}
	packed, err := packChart(folder, o.created)
	if err != nil {
		return fmt.Errorf("pack the chart: %w", err)
	}
	version := strings.TrimPrefix(o.release, "v")
	if err := os.WriteFile(filepath.Join(o.out, chartName+"-"+version+".tgz"), packed, 0o644); err != nil || !o.push {
		return err
	}
	image, err := chartImage(folder, packed)
	if err != nil {
		return err
	}
	// Helm expects the name of the chart at the end.
	registry := tag.RegistryStr()
	to, err := name.NewTag(registry + "/" + path.Join(path.Dir(tag.RepositoryStr()), "charts", chartName) + ":" + version)
	if err != nil {
		return err
	}
	if err := remote.Write(to, image, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("push the chart %s: %w", to, err)
	}
	return nil
}

// writeChart writes the chart, which is generated from the overlays.
func (o options) writeChart(ctx context.Context, folder string, flags ...string) error {
	arguments := append([]string{"run", "./manifests/render", "--chart", folder, "--chart-version", o.release}, flags...)
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = o.source
	if text, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("write the chart: %w\n%s", err, text)
	}
	return nil
}

// packChart returns the archive of a chart, as helm package makes it.
func packChart(folder string, at time.Time) ([]byte, error) {
	var entries []entry
	err := filepath.WalkDir(folder, func(file string, found fs.DirEntry, err error) error {
		if err != nil || found.IsDir() {
			return err
		}
		inside, err := filepath.Rel(folder, file)
		entries = append(entries, entry{name: path.Join(chartName, filepath.ToSlash(inside)), mode: 0o644, from: file})
		return err
	})
	if err != nil {
		return nil, err
	}
	return packGzip(entries, at)
}

// The types by which registries know charts: https://helm.sh/docs/topics/registries.
const (
	chartConfigType  = "application/vnd.cncf.helm.config.v1+json"
	chartContentType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// helmChart is the OCI artifact of a chart: its description, and one layer with its archive.
type helmChart struct {
	config, manifest []byte
	layer            v1.Layer
}

func chartImage(folder string, packed []byte) (v1.Image, error) {
	description, err := os.ReadFile(filepath.Join(folder, "Chart.yaml"))
	if err != nil {
		return nil, err
	}
	c := helmChart{layer: static.NewLayer(packed, chartContentType)}
	if c.config, err = yaml.YAMLToJSON(description); err != nil {
		return nil, err
	}
	config, size, err := v1.SHA256(bytes.NewReader(c.config))
	if err != nil {
		return nil, err
	}
	layer, err := partial.Descriptor(c.layer)
	if err != nil {
		return nil, err
	}
	c.manifest, err = json.Marshal(v1.Manifest{
		SchemaVersion: 2,
		MediaType:     types.OCIManifestSchema1,
		Config:        v1.Descriptor{MediaType: chartConfigType, Size: size, Digest: config},
		Layers:        []v1.Descriptor{*layer},
	})
	if err != nil {
		return nil, err
	}
	return partial.CompressedToImage(c)
}

// The interface partial.CompressedImageCore.

func (c helmChart) RawConfigFile() ([]byte, error)                         { return c.config, nil }
func (c helmChart) RawManifest() ([]byte, error)                           { return c.manifest, nil }
func (c helmChart) MediaType() (types.MediaType, error)                    { return types.OCIManifestSchema1, nil }
func (c helmChart) LayerByDigest(v1.Hash) (partial.CompressedLayer, error) { return c.layer, nil }
