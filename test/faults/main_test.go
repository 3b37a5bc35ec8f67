package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
)

// timeout is how long anything may take that a test waits for. It is long,
// because machines are slow, and not because anything needs it.
const timeout = 2 * time.Minute

// environment is what all tests share.
type environment struct {
	cluster      *cluster.Cluster
	installation *installation.Installation
	// client is that of the administrator, who is the user here. It does not go
	// through a proxy.
	client dynamic.Interface
}

var env environment

func TestMain(m *testing.M) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, m)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		code = 1
	}
	os.Exit(code)
}

// run has the webhook at work, and no agent: each test starts its own.
func run(ctx context.Context, m *testing.M) (code int, err error) {
	c, err := cluster.Start(ctx, cluster.Options{})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, c.Stop()) }()
	wide := installation.Options{WebhookArgs: []string{"--scope=cluster"}} // the agents are as narrow as ever, unless told
	installed, err := installation.InstallWith(ctx, c, wide, os.Stderr)
	if err != nil {
		return 1, err
	}
	if err := installed.StopAgent(); err != nil {
		return 1, err
	}
	client, err := dynamic.NewForConfig(c.RESTConfig())
	if err != nil {
		return 1, err
	}
	env = environment{cluster: c, installation: installed, client: client}
	return m.Run(), nil
}
