package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The commands: those of the image, and the plugin.
var (
	inImage = []string{"agent", "webhook"}
	plugin  = "kubectl-krake"
)

// platform is where an image runs.
type platform struct{ os, arch string }

func parsePlatform(text string) (platform, error) {
	switch system, arch, _ := strings.Cut(strings.TrimSpace(text), "/"); {
	case system == "linux" && (arch == "amd64" || arch == "arm64"):
		return platform{system, arch}, nil
	default:
		return platform{}, fmt.Errorf("--platforms: %q has to be linux/amd64 or linux/arm64", text)
	}
}

// String gives "linux-amd64", as in names of files.
func (p platform) String() string { return p.os + "-" + p.arch }

// build compiles commands into a folder. What goes into them is the sources and the
// version of Go, and nothing of this machine: no paths, no state of the checkout, no C,
// no features of its processor.
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
