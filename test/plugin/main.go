// Command plugin compares kubectl krake with kubectl: their sizes, built in the same way,
// and their start times, in turns, with their files cached and not.
//
//	go run ./test/plugin
//
// Kubectl is built from the module of the test cluster, which takes minutes the first time.
package main

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

	"github.com/spf13/pflag"

	"github.com/krake-observer/krake-observer/test/program"
)

func main() {
	rounds := pflag.Int("rounds", 20, "how often each is started")
	program.Main("plugin", nil, func(ctx context.Context) error {
		pflag.Parse()
		return run(ctx, *rounds, os.Stdout)
	})
}

// binary is one of the two programs.
type binary struct {
	name string
	// module is the folder of its module, source its package.
	module, source string
	// version has the arguments with which it prints its version.
	version []string
	path    string
}

func binaries() []binary {
	return []binary{
		{name: "kubectl", module: "test/cluster/kubernetes", source: "k8s.io/kubernetes/cmd/kubectl", version: []string{"version", "--client"}},
		{name: "kubectl krake", module: ".", source: "./cmd/kubectl-krake", version: []string{"version"}},
	}
}

func run(ctx context.Context, rounds int, out io.Writer) (err error) {
	if rounds < 1 {
		return errors.New("--rounds: must be at least 1")
	}
	folder, err := os.MkdirTemp("", "krake-plugin-")
	if err != nil {
		return fmt.Errorf("make a folder for the programs: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	both := binaries()
	for i := range both {
		if err := both[i].build(ctx, folder); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "%s/%s, %d cores, load %s; medians of %d, by turns\n\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), load(), rounds)
	fmt.Fprintln(out, "| | size | `--help`, cold | `--help` | version, cold | version |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|")
	times, err := measureAll(ctx, both, rounds)
	if err != nil {
		return err
	}
	for i, p := range both {
		info, err := os.Stat(p.path)
		if err != nil {
			return fmt.Errorf("look how large %s is: %w", p.name, err)
		}
		fmt.Fprintf(out, "| %s | %.1f MiB |", p.name, float64(info.Size())/(1<<20))
		for _, taken := range times[i] {
			fmt.Fprintf(out, " %d ms |", median(taken).Round(time.Millisecond).Milliseconds())
		}
		fmt.Fprintln(out)
	}
	return nil
}

// build builds the program as make build does.
func (p *binary) build(ctx context.Context, folder string) error {
	p.path = filepath.Join(folder, filepath.Base(p.source))
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", p.path, p.source)
	command.Dir = p.module
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s, from the folder of the repository: %w: %s", p.source, err, text)
	}
	return nil
}

// load returns the load of the machine: measurements on a busy one are worth little.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(text), " ")
	return one
}
