// Recording makes the recording in the README, docs/recording-light.svg and
// docs/recording-dark.svg. It starts a real API server with webhook and agent, runs the
// commands of the scene as a user would, and draws their output. The time between a
// command and its output is measured; the typing is simulated.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/program"
)

func main() {
	program.Main("recording", nil, func(ctx context.Context) error { return run(ctx, "docs") })
}

// run records the scene and writes both drawings into the folder.
func run(ctx context.Context, folder string) (err error) {
	server, err := cluster.Start(ctx, cluster.Options{PretendKubelet: true, Log: os.Stderr})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	if _, err := installation.Install(ctx, server, os.Stderr); err != nil {
		return err
	}
	frames, err := record(ctx, server)
	if err != nil {
		return err
	}
	for name, theme := range themes {
		path := filepath.Join(folder, "recording-"+name+".svg")
		if err := os.WriteFile(path, []byte(draw(frames, theme)), 0o644); err != nil {
			return fmt.Errorf("write the recording: %w", err)
		}
	}
	return nil
}
