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
	"strings"
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

	b := build{recipe: r, scratch: scratch, reaper: reaper, progress: progress, started: time.Now()}
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
	fmt.Fprintf(progress, "cluster: built Kubernetes %s in %s, kept in %s\n", r.version, b.elapsed(), r.folder)
	return nil
}

// link makes a link for each name of the binary.
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
	scratch  string
	reaper   *reaper
	progress io.Writer
	started  time.Time
}

func (b build) elapsed() time.Duration {
	return time.Since(b.started).Round(time.Second)
}

// run makes the binary in the folder result: first the list of packages, which
// downloads the modules and determines the amount of work, then the compilation.
func (b build) run(ctx context.Context, result string) error {
	fmt.Fprintf(b.progress, "cluster: building etcd and Kubernetes %s for the tests, once; first its modules (about 90 MB, if they are not here yet)\n", b.version)
	stale, err := b.list(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(b.progress, "cluster: compiling %d of %d packages (the others are in Go's build cache), about %s on %d cores\n",
		stale.count(), len(stale), estimate(stale.count(), runtime.NumCPU()), runtime.NumCPU())
	return b.compile(ctx, stale, result)
}

// packages has for each package of the binary whether it must be compiled.
type packages map[string]bool

func (p packages) count() int {
	n := 0
	for _, stale := range p {
		if stale {
			n++
		}
	}
	return n
}

// estimate returns the time for compiling, from a measurement: 390 seconds for 2711
// packages on two cores, and 10 seconds for the linker.
func estimate(packages, cores int) time.Duration {
	compile := time.Duration(packages) * 290 * time.Millisecond / time.Duration(cores)
	return (compile + 10*time.Second).Round(10 * time.Second)
}

// list returns the packages. It downloads the modules, because go list downloads only
// the needed ones and go mod download all.
func (b build) list(ctx context.Context) (packages, error) {
	modules := counter{}
	stop := follow(b.progress, func() string {
		if modules.value() == 0 {
			return fmt.Sprintf("listing packages, %s", b.elapsed())
		}
		return fmt.Sprintf("downloading modules, so far %d, %s", modules.value(), b.elapsed())
	})
	defer stop()

	var out strings.Builder
	command := b.command(ctx, "list", "-buildvcs=false", "-trimpath", "-deps", "-f", "{{.ImportPath}} {{.Stale}}", ".")
	command.Stdout = &out
	if err := eachLine(command, func(line string) bool {
		return strings.HasPrefix(line, "go: downloading ") && modules.add()
	}); err != nil {
		return nil, fmt.Errorf("list packages: %w", err)
	}
	return parsePackages(out.String()), nil
}

// parsePackages parses the output of list. It skips the last package, the program
// itself, which is always stale because it is not installed.
func parsePackages(list string) packages {
	p, last := packages{}, ""
	for line := range strings.Lines(list) {
		path, stale, _ := strings.Cut(strings.TrimSpace(line), " ")
		p[path], last = stale == "true", path
	}
	p[last] = false
	return p
}

// compile compiles and links the binary.
func (b build) compile(ctx context.Context, stale packages, result string) error {
	if err := os.Mkdir(result, 0o755); err != nil {
		return fmt.Errorf("make folder: %w", err)
	}
	compiled, want := counter{}, stale.count()
	stop := follow(b.progress, func() string {
		if compiled.value() >= want {
			return fmt.Sprintf("linking, %s", b.elapsed())
		}
		return fmt.Sprintf("compiled %d of %d packages, %s", compiled.value(), want, b.elapsed())
	})
	defer stop()

	args := append([]string{"build", "-v", "-o", filepath.Join(result, "kubernetes")}, flags(b.version)...)
	if err := eachLine(b.command(ctx, append(args, ".")...), func(line string) bool {
		_, known := stale[line]
		return known && compiled.add()
	}); err != nil {
		return fmt.Errorf("compile: %w", err)
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
