// Images builds the image and the plugin without Docker:
//
//	go -C images run . --out ../bin
//
// makes, in that folder,
//
//	krake-observer.oci.tar                 the image of agent and webhook, for all platforms
//	krake-observer-linux-amd64.spdx.json   what is in the image of one platform
//	kubectl-krake-linux-amd64              the plugin, which is in no image
//
// The archive is an OCI image layout, which ctr images import, kind load image-archive
// and podman load read. The same sources, built by the same version of Go, have the
// same digests, wherever that is.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
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

// options are what is to be built.
type options struct {
	source    string
	out       string
	name      string
	platforms []platform
	// created is the time of everything in the image.
	created time.Time
}

// run builds all that is asked for, and says what has come of it.
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
	platforms := flags.String("platforms", "linux/amd64,linux/arm64", "platforms, with commas between")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("%q: there are no arguments but flags", flags.Arg(0))
	}
	if tagOf(o.name) == "" {
		return o, fmt.Errorf("--name: %q has to be REGISTRY/NAME:TAG", o.name)
	}
	for text := range strings.SplitSeq(*platforms, ",") {
		p, err := parsePlatform(text)
		if err != nil {
			return o, err
		}
		if slices.Contains(o.platforms, p) {
			return o, fmt.Errorf("--platforms: %s is named twice", text)
		}
		o.platforms = append(o.platforms, p)
	}
	o.created = time.Unix(0, 0).UTC()
	if epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil || seconds < 0 {
			return o, fmt.Errorf("SOURCE_DATE_EPOCH: %q has to be a number of seconds since 1970", epoch)
		}
		o.created = time.Unix(seconds, 0).UTC()
	}
	return o, nil
}

// tagOf gives the tag of a full name, or nothing if it is none.
func tagOf(name string) string {
	registry, rest, ok := strings.Cut(name, "/")
	repository, tag, tagged := strings.Cut(rest, ":")
	if !ok || !tagged || registry == "" || repository == "" || strings.Contains(repository, "@") || strings.ContainsAny(tag, ":/@") {
		return ""
	}
	return tag
}
