package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/faults/checker"
	"github.com/krake-observer/krake-observer/test/faults/results"
	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
)

// timeout limits every wait of a test. It is long only because machines are slow.
var timeout = 2 * time.Minute

// environment is what all tests share.
type environment struct {
	// Plane has the clients of the administrator, who is the user here. They bypass the
	// proxy.
	*kit.Plane

	installation *installation.Installation
	// results is the folder for the results of the release tier, or nil; version is
	// that of the sources.
	results *results.Folder
	version string
	// records has the records of all tales of this run.
	mu      sync.Mutex
	records []results.Record
	// only selects points; nil selects all.
	only *regexp.Regexp
	// warming has the times just after a restart of the API server, by a test that runs
	// alone.
	warming []checker.Window
	// interrupted returns an error after an interrupt: no more trials begin.
	interrupted func() error
	// seed determines all random choices.
	seed uint64
}

var env environment

func TestMain(m *testing.M) {
	kit.Suite{
		Name: "faults", AtOnce: 7, Start: start, Stop: stop,
		Check: func(context.Context) error { return tell(results.Markdown(results.Table(env.records))) },
	}.Main(m)
}

// start starts the webhook, and no agent: each test starts its own.
func start(ctx context.Context) (err error) {
	env.Plane, err = kit.StartPlane(ctx, cluster.Options{
		AuditPolicy:    checker.AuditPolicy,
		PretendKubelet: true,
		APIServerArgs:  []string{"--etcd-compaction-interval", "20s"}, // old versions are really gone
	})
	if err != nil {
		return err
	}
	wide := installation.Options{WebhookArgs: []string{"--scope=cluster"}} // the agents have their usual scope unless a test changes it
	env.installation, err = installation.InstallWith(ctx, env.Cluster, wide, os.Stderr)
	if err != nil {
		return err
	}
	if err := env.installation.StopAgent(); err != nil {
		return err
	}
	env.seed, env.interrupted = rand.Uint64(), ctx.Err
	if text := os.Getenv(seedVariable); text != "" {
		if env.seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			return fmt.Errorf("%s: %w", seedVariable, err)
		}
	}
	if text := os.Getenv(onlyVariable); text != "" {
		if env.only, err = regexp.Compile(text); err != nil {
			return fmt.Errorf("%s: %w", onlyVariable, err)
		}
		timeout = 80 * time.Second
	}
	fmt.Fprintf(os.Stderr, "faults: %s=%d repeats what is left to chance\n", seedVariable, env.seed)
	if err := (definition{group: songsGroup, plural: "*"}).grant(ctx); err != nil { // each song has its own kind
		return err
	}
	if folder := os.Getenv(resultsFolder); folder != "" {
		env.version = versionOf(ctx)
		env.results, err = results.Open(folder, time.Now())
	}
	return err
}

// stop stops everything. A restarted API server ends before the webhook, which must not
// wait for it.
func stop() error {
	var failures []error
	if env.results != nil {
		failures = append(failures, env.results.Close())
	}
	if env.installation != nil {
		failures = append(failures, env.installation.StopWebhook())
	}
	if env.Plane != nil {
		failures = append(failures, env.Stop())
	}
	return errors.Join(failures...)
}

// tell prints the table of trials, and writes it to a file on request: the runner shows no
// output of tests that pass.
func tell(table string) error {
	fmt.Fprintf(os.Stderr, "faults: what was tried\n%s", table)
	path := os.Getenv(tableFile)
	if path == "" {
		return nil
	}
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(table), 0o600))
}

// versionOf returns the version of the sources, if they are a checkout.
func versionOf(ctx context.Context) string {
	text, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}
