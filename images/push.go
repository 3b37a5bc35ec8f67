package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// digestFile is the name of the file with the digest of the image for all platforms, by
// which it is signed and installed.
const digestFile = "krake-observer.digest"

// publish writes the digest, and with --push sends the image to the registry of its name.
// The credentials are those of docker login or crane auth login.
func (o options) publish(ctx context.Context, index v1.ImageIndex) error {
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(o.out, digestFile), []byte(digest.String()+"\n"), 0o644); err != nil {
		return err
	}
	if !o.push {
		return nil
	}
	tag, err := name.NewTag(o.name)
	if err != nil {
		return fmt.Errorf("--name: %w", err)
	}
	if err := remote.WriteIndex(tag, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("push %s: %w", tag, err)
	}
	return nil
}
