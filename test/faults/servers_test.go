package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/faults/checker"
	"github.com/krake-observer/krake-observer/test/kit"
)

// The servers fail during the agent's work: the API server is killed and started, so that no watch
// continues and the agent's resourceVersions are too old. etcd pauses, or is slow. Or
// the agent gets no more memory in a storm of changes, again and again.
func TestServers(t *testing.T) {
	lanes := []*lane{newLane(t, "servers", resync, "--namespaces", "servers")}
	const strikes = 1 // the sentence after which a server fails
	var tales []*tale
	for what, strike := range map[string]func(context.Context, *app) error{
		"the API server is killed and started": func(ctx context.Context, _ *app) error { return restartAPIServer(ctx) },
		"etcd stands still":                    pauseEtcd,
		"etcd takes 500 ms for each answer":    slowEtcd,
		"the agent gets no more memory":        starve,
	} {
		tales = append(tales, &tale{
			point:    point{"servers", troubled.name, what, fmt.Sprintf("sentence %d", strikes+1)},
			scenario: troubled, met: func() bool { return true },
			after: func(ctx context.Context, a *app, now int) error {
				if now != strikes {
					return nil
				}
				return strike(ctx, a)
			},
		})
	}
	playTales(t, lanes, sample("servers", tales, len(tales)))
}

// pulse pauses a process for a while.
func pulse(ctx context.Context, of *cluster.Process, long time.Duration) error {
	if err := syscall.Kill(of.PID(), syscall.SIGSTOP); err != nil {
		return err
	}
	return errors.Join(sleep(ctx, long), syscall.Kill(of.PID(), syscall.SIGCONT))
}

// pauseEtcd pauses etcd for a while.
func pauseEtcd(ctx context.Context, _ *app) error {
	return pulse(ctx, env.Newest("etcd"), 3*time.Second)
}

// slowEtcd makes etcd slow for a while, as a disk does that takes 500 ms for a sync.
func slowEtcd(ctx context.Context, _ *app) error {
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		if err := errors.Join(pulse(ctx, env.Newest("etcd"), 500*time.Millisecond), sleep(ctx, 20*time.Millisecond)); err != nil {
			return err
		}
	}
	return nil
}

// starve makes the agent end for lack of memory while an object of 800 KiB changes continuously, three
// times. It is started again, as a kubelet does.
func starve(ctx context.Context, a *app) error {
	of, large := a.lane.agent, strings.Repeat("x", 800<<10)
	for range 3 {
		if err := of.starve(ctx, func(change int) error {
			return drifts(fmt.Sprintf("configmap %s%d", large, change))(ctx, a)
		}); err != nil {
			return errors.Join(err, of.kill())
		}
		if err := errors.Join(of.kill(), of.start()); err != nil {
			return err
		}
	}
	return nil
}

// starve forbids the agent more memory, and calls storm until it has ended.
func (a *agent) starve(ctx context.Context, storm func(change int) error) error {
	a.mu.Lock()
	process := a.process
	a.mu.Unlock()
	if process == nil {
		return nil
	}
	if err := unix.Prlimit(process.PID(), unix.RLIMIT_DATA, &unix.Rlimit{Cur: 1, Max: unix.RLIM_INFINITY}, nil); err != nil {
		return fmt.Errorf("forbid the agent more memory: %w", err)
	}
	for change := range 200 {
		if err := errors.Join(storm(change), sleep(ctx, 50*time.Millisecond)); err != nil {
			return err
		}
		if process.Ended() {
			return nil
		}
	}
	return errors.New("the agent needs no more memory in a storm of 200 changes")
}

// restartAPIServer kills the API server, and starts it again with the same arguments.
func restartAPIServer(ctx context.Context) error {
	former := env.Newest("kube-apiserver")
	if err := former.Kill(); err != nil {
		return err
	}
	start := time.Now()
	if _, err := env.Again(former, nil); err != nil {
		return err
	}
	err := eventually(ctx, func(ctx context.Context) error {
		_, err := get(ctx, kit.ConfigMaps, types.NamespacedName{Namespace: "kube-system", Name: "kube-root-ca.crt"})
		return err
	})
	const warm = 10 * time.Second // the administrator is answered earlier, because this needs no RBAC rules
	env.warming = append(env.warming, checker.Window{From: start, Until: time.Now().Add(warm)})
	return err
}
