package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/program"
)

//go:embed web.yaml
var application []byte

// frame is one command of the recording with its output.
type frame struct {
	// remark is a line above the command, for the reader.
	remark  string
	command string
	// shows is a text that the output must have. The command runs again until it does: the
	// status records a drift up to some seconds after its repair.
	shows  string
	output string
	took   time.Duration
}

// scene has the commands in their order.
var scene = []frame{
	{remark: "an Application: an annotated ConfigMap with a manifest", command: "cat web.yaml"},
	{command: "kubectl create -f web.yaml"},
	{command: "kubectl wait configmap/web --for=jsonpath='{.metadata.labels.krake\\.dev/state}'=RUNNING"},
	{remark: "one change to a field that the manifest sets, one to a field that it does not set", command: "kubectl set image deployment/web web=nginx:evil"},
	{command: "kubectl annotate deployment/web team=payments"},
	{command: `kubectl get deployment web -o jsonpath="{..image}, team {.metadata.annotations.team}"`, shows: "nginx:1.27, team payments"},
	{remark: "who was it?", command: "kubectl krake history web", shows: "kubectl-set"},
}

// record runs the commands in a shell, one after the other.
func record(ctx context.Context, server *cluster.Cluster) ([]frame, error) {
	folder, err := os.MkdirTemp("", "recording-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the recording: %w", err)
	}
	defer os.RemoveAll(folder) //nolint:errcheck // a temporary folder
	if err := os.WriteFile(filepath.Join(folder, "web.yaml"), application, 0o600); err != nil {
		return nil, fmt.Errorf("write the Application: %w", err)
	}
	programs := []string{filepath.Dir(server.Kubectl()), filepath.Join(server.Dir(), "installation"), os.Getenv("PATH")}
	environment := append(os.Environ(), "KUBECONFIG="+server.Kubeconfig(), "PATH="+strings.Join(programs, string(os.PathListSeparator)))
	recorded := make([]frame, 0, len(scene))
	for _, f := range scene {
		if err := f.run(ctx, folder, environment); err != nil {
			return nil, err
		}
		recorded = append(recorded, f)
	}
	return recorded, nil
}

// run repeats the command until its output has the required text, and stores output and
// time of the last run.
func (f *frame) run(ctx context.Context, folder string, environment []string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		command := exec.CommandContext(ctx, "sh", "-c", f.command)
		command.Dir, command.Env = folder, environment
		begun := time.Now()
		output, err := command.CombinedOutput()
		f.output, f.took = string(output), time.Since(begun)
		if err == nil && strings.Contains(f.output, f.shows) {
			return nil
		}
		if err == nil {
			err = program.Pause(ctx, 200*time.Millisecond)
		}
		if err != nil {
			return fmt.Errorf("%s: want %q in its output: %w\n%s", f.command, f.shows, err, output)
		}
	}
}
