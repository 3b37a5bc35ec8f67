package faults

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/faults/results"
	"github.com/krake-observer/krake-observer/test/kit"
)

// The API server is killed during the agent's work, and started again. No watch
// continues, and the agent's resourceVersions are too old. Or etcd pauses.
func TestServers(t *testing.T) {
	kit.Long(t, "servers are killed and stand still")
	lanes := []*lane{newLane(t, "servers", resync, "--namespaces", "servers")}
	var tales []*tale
	for sentence := range troubled.life {
		for what, strike := range map[string]func(context.Context) error{
			"the API server is killed and started": restartAPIServer, "etcd stands still": pauseEtcd,
		} {
			if !isThorough() && sentence != 1 {
				continue
			}
			tales = append(tales, &tale{
				Point:    results.Point{Block: "servers", Scenario: troubled.name, Mode: what, Place: fmt.Sprintf("sentence %d", sentence+1), Round: 1},
				scenario: troubled, met: func() bool { return true },
				after: func(ctx context.Context, _ *app, now int) error {
					if now != sentence {
						return nil
					}
					return strike(ctx)
				},
			})
		}
	}
	playTales(t, lanes, remaining(tales))
}

// pauseEtcd pauses etcd for a while.
func pauseEtcd(ctx context.Context) error {
	etcd := processOf("etcd")
	if err := syscall.Kill(etcd.PID(), syscall.SIGSTOP); err != nil {
		return err
	}
	return errors.Join(sleep(ctx, 3*time.Second), syscall.Kill(etcd.PID(), syscall.SIGCONT))
}

// processOf returns the last started process of a component.
func processOf(name string) *cluster.Process {
	var found *cluster.Process
	for _, each := range env.Processes() {
		if each.Name() == name {
			found = each
		}
	}
	return found
}
