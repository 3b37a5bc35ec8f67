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

// timeout is how long anything may take that a test waits for. It is long,
// because machines are slow, and not because anything needs it.
var timeout = 2 * time.Minute

// environment is what all tests share.
type environment struct {
	// Plane has the clients of the administrator, who is the user here. They do not go
	// through a proxy.
	*kit.Plane

	installation *installation.Installation
	// results is where those of the release tier go, nil in any other; version is that
	// of the sources.
	results *results.Folder
	version string
	// records are of all tales of this run.
	mu      sync.Mutex
	records []results.Record
	// only chooses points; nil: nobody does.
	only *regexp.Regexp
	// warming is when the API server had been started once more, by a test that runs alone.
	warming []checker.Window
	// interrupted has an error when somebody wants no more trials to begin.
	interrupted func() error
	// seed is what all that is left to chance comes from.
	seed uint64
}

var env environment

func TestMain(m *testing.M) {
	kit.Suite{
		Name: "faults", AtOnce: 7, Start: start, Stop: stop,
		Check: func(context.Context) error { return tell(results.Markdown(results.Table(env.records))) },
	}.Main(m)
}

// start has the webhook at work, and no agent: each test starts its own.
func start(ctx context.Context) (err error) {
	env.Plane, err = kit.StartPlane(ctx, cluster.Options{
		AuditPolicy:   checker.AuditPolicy,
		APIServerArgs: []string{"--etcd-compaction-interval", "20s"}, // what is older is gone, truly
	})
	if err != nil {
		return err
	}
	wide := installation.Options{WebhookArgs: []string{"--scope=cluster"}} // the agents are as narrow as ever, unless told
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
	if err := (definition{group: songsGroup, plural: "*"}).grant(ctx); err != nil { // each song is of its own kind
		return err
	}
	if folder := os.Getenv(resultsFolder); folder != "" {
		env.version = versionOf(ctx)
		env.results, err = results.Open(folder, time.Now())
	}
	return err
}

// stop stops what was started. An API server that was started again ends before the
// webhook does, which must not wait for it.
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

// tell prints what was tried, and writes it where that is asked for: of tests that pass, the
// runner shows nothing.
func tell(table string) error {
	fmt.Fprintf(os.Stderr, "faults: what was tried\n%s", table)
	path := os.Getenv(tableFile)
	if path == "" {
		return nil
	}
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(table), 0o600))
}

// versionOf names the sources, if they are a checkout.
func versionOf(ctx context.Context) string {
	text, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}
