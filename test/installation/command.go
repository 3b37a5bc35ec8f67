package installation

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/krake-observer/krake-observer/test/cluster"
)

const (
	readyTimeout = 60 * time.Second
	pollInterval = 200 * time.Millisecond
)

// command is one of the product's commands as a process.
type command struct {
	process *cluster.Process
	health  string
}

// Logs returns the log files of webhooks, agents and Habitat controllers.
func (i *Installation) Logs() []string {
	var logs []string
	for _, r := range i.replicas {
		logs = append(logs, filepath.Join(i.cluster.Dir(), r.name+".log"))
	}
	for _, a := range i.agents {
		logs = append(logs, filepath.Join(i.cluster.Dir(), a.name+".log"))
	}
	for _, h := range i.habitats {
		logs = append(logs, filepath.Join(i.cluster.Dir(), h.name+".log"))
	}
	return logs
}

// LogFiles returns [Installation.Logs], as [Pods.LogFiles] does for Pods.
func (i *Installation) LogFiles(context.Context) ([]string, error) { return i.Logs(), nil }

// MetricsURLs returns the addresses of the metrics of webhooks and the first agent,
// which have self-signed certificates.
func (i *Installation) MetricsURLs(context.Context) ([]string, error) {
	return append(i.Metrics(), "https://"+i.AgentMetrics()+"/metrics"), nil
}

// start starts one of the built programs as a process of that name.
func (i *Installation) start(program, name string, arguments ...string) (*command, error) {
	health, err := cluster.FreeAddress()
	if err != nil {
		return nil, err
	}
	arguments = append(arguments, "--health-probe-bind-address", health)
	child := exec.Command(filepath.Join(i.dir, program), arguments...)
	child.Env = append(os.Environ(), "GOMEMLIMIT=300MiB") // as in the shipped Deployments
	process, err := i.cluster.Run(name, child)
	if err != nil {
		return nil, err
	}
	return &command{process: process, health: health}, nil
}

func (c *command) waitReady(ctx context.Context) error {
	err := poll(ctx, c.process.Name()+" is not ready, see "+c.process.Log(), func() bool { return c.process.Ended() || c.isReady(ctx, time.Second) })
	if c.process.Ended() {
		return errors.Join(fmt.Errorf("%s ended before it was ready", c.process.Name()), c.process.Wait())
	}
	if err == nil {
		return nil
	}
	text, _ := os.ReadFile(c.process.Log()) // at the end of the test, later lines may hide the cause
	return fmt.Errorf("%w; its log ends with\n%s", err, text[max(0, len(text)-4<<10):])
}

func (c *command) isReady(ctx context.Context, patience time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.health+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// poll repeats done until it reports true, and ends with the problem.
func poll(ctx context.Context, problem string, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for !done() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", problem, ctx.Err())
		case <-time.After(pollInterval):
		}
	}
	return nil
}
