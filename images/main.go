// Images builds the image and the plugin without Docker:
//
//	go -C images run . --out ../bin
//
// makes, in that folder,
//
//	krake-observer.oci.tar                 the image of all servers, for all platforms
//	krake-observer-linux-amd64.spdx.json   what is in the image of one platform
//	krake-observer.digest                  the digest of the image for all platforms
//	kubectl-krake-linux-amd64              the plugin, which is in no image
//
// With --push it also sends the image to the registry of its name, and with --release
// v1.2.3 it makes the other files of a release:
//
//	kubectl-krake-v1.2.3-darwin-arm64.tar.gz   the plugin, for each supported platform
//	checksums.txt                              their sums
//	krake.yaml                                 by which krew installs them
//	krake-observer-1.2.3.tgz                   the Helm chart, which --push sends to the registry, too
//
// The archive is an OCI image layout, which ctr images import, kind load image-archive
// and podman load read. The same sources, built by the same version of Go, have the
// same digests on any machine.
//
// This is not ko, which reads a base image from a registry and puts one program into an
// image: docs/adr/042-built-by-hand.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

// options are the files to build.
type options struct {
	source    string
	out       string
	name      string
	platforms []platform
	push      bool
	release   string     // empty: no release
	plugins   []platform // of a release
	// created is the time of everything in the image.
	created time.Time
}

// run builds the requested files, and prints their names.
func run(ctx context.Context, arguments []string, out io.Writer) error {
	o, err := parse(arguments, os.Getenv("SOURCE_DATE_EPOCH"))
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "krake-images-")
	if err != nil {
		return err
	}
	return errors.Join(o.makeAll(ctx, scratch, out), os.RemoveAll(scratch))
}

func parse(arguments []string, epoch string) (options, error) {
	var o options
	flags := flag.NewFlagSet("images", flag.ContinueOnError)
	flags.StringVar(&o.source, "source", "..", "folder of the repository")
	flags.StringVar(&o.out, "out", "../bin", "folder to write to")
	flags.StringVar(&o.name, "name", "docker.io/krake-observer/krake-observer:latest", "name of the image, with its registry and its tag")
	platforms := flags.String("platforms", "linux/amd64,linux/arm64", "platforms of the image, separated by commas")
	flags.BoolVar(&o.push, "push", false, "send the image to the registry of its name, with the credentials of docker login")
	flags.StringVar(&o.release, "release", "", "version, as v1.2.3: make archives with the plugin, too")
	plugins := flags.String("plugins", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64", "platforms of the plugin in a release")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%q: no arguments are accepted, only flags", flags.Arg(0))
	}
	if tagOf(o.name) == "" {
		return o, fmt.Errorf("--name: %q has to be REGISTRY/NAME:TAG", o.name)
	}
	if o.release != "" && !isVersion.MatchString(o.release) {
		return o, fmt.Errorf("--release: %q has to be a version, as v1.2.3 or v1.2.3-rc.1", o.release)
	}
	var err error
	if o.platforms, err = parsePlatforms("--platforms", *platforms, imagePlatforms); err != nil {
		return o, err
	}
	if o.plugins, err = parsePlatforms("--plugins", *plugins, pluginPlatforms); err != nil {
		return o, err
	}
	o.created, err = parseEpoch(epoch)
	return o, err
}

// parseEpoch parses the time of everything in the image. The default is 1970.
func parseEpoch(epoch string) (time.Time, error) {
	if epoch == "" {
		return time.Unix(0, 0).UTC(), nil
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil || seconds < 0 {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH: %q has to be a number of seconds since 1970", epoch)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// tagOf returns the tag of a full name, or nothing if the name is not full.
func tagOf(name string) string {
	registry, rest, ok := strings.Cut(name, "/")
	repository, tag, tagged := strings.Cut(rest, ":")
	if !ok || !tagged || registry == "" || repository == "" || strings.Contains(repository, "@") || strings.ContainsAny(tag, ":/@") {
		return ""
	}
	return tag
}
