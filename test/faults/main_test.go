package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/faults/checker"
	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
)

const (
	// onlyVariable selects points by a regular expression, and ends the tests with the
	// first violation. Use it to repeat one point, or to show that a sweep catches a bug.
	onlyVariable = "KRAKE_FAULTS_ONLY"
	// roundsVariable multiplies the size of all samples.
	roundsVariable = "KRAKE_FAULTS_ROUNDS"
	// seedVariable sets the seed of the random choices.
	seedVariable = "KRAKE_TEST_SEED"
)

// timeout limits every wait of a test. It is long only because machines are slow.
var timeout = 2 * time.Minute

// environment is what all tests share.
type environment struct {
	// Plane has the clients of the administrator, who is the user here. They bypass the
	// proxy.
	*kit.Plane

	installation *installation.Installation
	// only selects points; nil leaves the choice to chance.
	only   *regexp.Regexp
	rounds int
	// warming has the times just after a restart of the API server, by a test that runs
	// alone.
	warming []checker.Window
	// seed determines all random choices.
	seed uint64
}

var env environment

func TestMain(m *testing.M) {
	kit.Suite{Name: "faults", Long: "many samples", AtOnce: 7, Start: start, Stop: stop}.Main(m)
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
	if env.installation, err = installation.InstallWith(ctx, env.Cluster, installation.Options{}, os.Stderr); err != nil {
		return err
	}
	if err := env.installation.StopAgent(); err != nil {
		return err
	}
	if env.seed, err = numberOf(seedVariable, rand.Uint64()); err != nil {
		return err
	}
	rounds, err := numberOf(roundsVariable, 1)
	if err != nil {
		return err
	}
	env.rounds = int(rounds) //nolint:gosec // a small number
	if text := os.Getenv(onlyVariable); text != "" {
		if env.only, err = regexp.Compile(text); err != nil {
			return fmt.Errorf("%s: %w", onlyVariable, err)
		}
		timeout = 80 * time.Second
	}
	fmt.Fprintf(os.Stderr, "faults: %s=%d repeats what is left to chance\n", seedVariable, env.seed)
	return definition{group: songsGroup, plural: "*"}.grant(ctx) // each song has its own kind
}

// numberOf reads a number from the environment.
func numberOf(variable string, otherwise uint64) (uint64, error) {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise, nil
	}
	number, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", variable, err)
	}
	return number, nil
}

// stop stops everything. A restarted API server ends before the webhook, which must not
// wait for it.
func stop() error {
	var failures []error
	if env.installation != nil {
		failures = append(failures, env.installation.StopWebhook())
	}
	if env.Plane != nil {
		failures = append(failures, env.Stop())
	}
	return errors.Join(failures...)
}
