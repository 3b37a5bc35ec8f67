package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// provide builds the recipe's folder unless it exists. The folder appears complete or
// not at all, and of several programs that need it at once, one builds.
func (r recipe) provide(ctx context.Context, progress io.Writer) error {
	if r.exists() {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(r.folder), 0o755); err != nil {
		return fmt.Errorf("make cache folder: %w", err)
	}
	unlock, err := lock(ctx, r.folder+".lock", func() {
		fmt.Fprintf(progress, "cluster: another program is building Kubernetes %s: waiting for it\n", r.version)
	})
	if err != nil {
		return err
	}
	defer unlock()
	if r.exists() { // another program may have built it meanwhile
		return nil
	}
	return r.build(ctx, progress)
}

func (r recipe) exists() bool {
	_, err := os.Stat(r.folder)
	return err == nil
}

// build makes the folder in a temporary folder beside it, and removes that one together
// with all children of the go command.
func (r recipe) build(ctx context.Context, progress io.Writer) (err error) {
	scratch, err := os.MkdirTemp(filepath.Dir(r.folder), "building-")
	if err != nil {
		return fmt.Errorf("make scratch folder: %w", err)
	}
	reaper, err := startReaper(scratch)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reaper.close()) }()

	started := time.Now()
	fmt.Fprintf(progress, "cluster: building etcd and Kubernetes %s for the tests, once: some minutes, and 90 MB of modules\n", r.version)
	b := build{recipe: r, scratch: scratch, reaper: reaper}
	result := filepath.Join(scratch, "result")
	if err := b.run(ctx, result); err != nil {
		return err
	}
	if err := link(result); err != nil {
		return err
	}
	if err := os.Rename(result, r.folder); err != nil {
		return fmt.Errorf("keep the build: %w", err)
	}
	fmt.Fprintf(progress, "cluster: built Kubernetes %s in %s, kept in %s\n", r.version, time.Since(started).Round(time.Second), r.folder)
	return nil
}

// link makes a link for each name of the multi-call binary.
func link(folder string) error {
	for _, name := range programs {
		if err := os.Symlink("kubernetes", filepath.Join(folder, name)); err != nil {
			return fmt.Errorf("link program: %w", err)
		}
	}
	return nil
}

// build is a running build of a recipe.
type build struct {
	recipe
	scratch string
	reaper  *reaper
}

// run makes the binaries in the folder result.
func (b build) run(ctx context.Context, result string) error {
	if err := os.Mkdir(result, 0o755); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	args := append([]string{"build", "-o", result + string(filepath.Separator)}, flags(b.version)...)
	command := b.command(ctx, append(args, ".", kubectlPackage)...)
	command.WaitDelay = time.Second // once it is killed, its children may hold its output open
	if text, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("compile: %w\n%s", err, lastLines(string(text), 40))
	}
	return nil
}

// command returns a go command in the nested module, independent of the user's
// settings: of a workspace, of flags for the outer module, and of another platform. It
// does not clear GOFLAGS, because go would then read a settings file.
func (b build) command(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = b.source
	command.Env = append(os.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off", "CGO_ENABLED=0",
		"GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH, "GOTMPDIR="+b.scratch)
	b.reaper.adopt(command)
	return command
}
