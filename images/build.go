package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// The commands: those of the image, and the plugin.
var (
	inImage = []string{"agent", "habitat", "webhook"}
	plugin  = "kubectl-krake"
)

// platform is where an image runs.
type platform struct{ os, arch string }

// The platforms that images and plugins are made for.
var (
	imagePlatforms  = []platform{{"linux", "amd64"}, {"linux", "arm64"}}
	pluginPlatforms = append(imagePlatforms[:2:2], platform{"darwin", "amd64"}, platform{"darwin", "arm64"}, platform{"windows", "amd64"})
)

// parsePlatforms parses platforms that are separated by commas. Each must be a supported one.
func parsePlatforms(flag, text string, possible []platform) ([]platform, error) {
	var all []platform
	for one := range strings.SplitSeq(text, ",") {
		system, arch, _ := strings.Cut(strings.TrimSpace(one), "/")
		p := platform{system, arch}
		if !slices.Contains(possible, p) {
			return nil, fmt.Errorf("%s: %q has to be one of %s", flag, one, possible)
		}
		if slices.Contains(all, p) {
			return nil, fmt.Errorf("%s: %s is named twice", flag, one)
		}
		all = append(all, p)
	}
	return all, nil
}

// String returns the form of file names, as "linux-amd64".
func (p platform) String() string { return p.os + "-" + p.arch }

// program returns the name of a command's file on the platform.
func (p platform) program(command string) string {
	if p.os == "windows" {
		return command + ".exe"
	}
	return command
}

// build compiles commands into a folder. The result depends on the sources and the version
// of Go alone: it has no paths, no state of the checkout, no C, and no features of this
// machine's processor.
func build(ctx context.Context, source, folder string, p platform, commands ...string) error {
	arguments := []string{"build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", folder + string(filepath.Separator)}
	for _, command := range commands {
		arguments = append(arguments, "./cmd/"+command)
	}
	compiler := exec.CommandContext(ctx, "go", arguments...)
	compiler.Dir = source
	compiler.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch,
		"GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=", "GOEXPERIMENT=", "GOFIPS140=off", "GOWORK=off", "GODEBUG=")
	if text, err := compiler.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s for %s/%s: %w\n%s", strings.Join(commands, ", "), p.os, p.arch, err, text)
	}
	return nil
}
