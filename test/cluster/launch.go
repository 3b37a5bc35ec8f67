package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/krake-observer/krake-observer/test/program"
)

// launch starts a component on free ports and waits until it is ready. Another program
// can take a port between its choice and its use. The component's log shows that, and
// launch tries other ports.
func (b *controlPlane) launch(ctx context.Context, c component) ([]int, error) {
	for attempt := 1; ; attempt++ {
		ports, err := FreePorts(c.ports)
		if err != nil {
			return nil, err
		}
		err = b.try(ctx, c, ports)
		if err == nil || attempt == 5 || !strings.Contains(err.Error(), "address already in use") {
			return ports, err
		}
		fmt.Fprintf(b.options.log(), "cluster: a port of %s was taken: it is started again\n", c.name)
	}
}

// try starts a component on these ports and waits until it is ready.
func (b *controlPlane) try(ctx context.Context, c component, ports []int) error {
	p, err := b.Run(c.name, c.command(ports))
	if err != nil {
		return err
	}
	p.mayHang = true // on a busy machine: no test is about the API server
	return b.await(ctx, c.health(ports), p)
}

// await waits until the URL answers 200, or until the process ends, if there is one.
func (b *controlPlane) await(ctx context.Context, url string, p *Process) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		if p != nil && p.Ended() {
			return earlyExit(p)
		}
		err := b.get(ctx, url)
		if err == nil {
			return nil
		}
		if ended := program.Pause(ctx, 50*time.Millisecond); ended != nil {
			err = fmt.Errorf("wait for %s: %w (last: %w)", url, ended, err)
			if p != nil {
				err = p.failure(err)
			}
			return err
		}
	}
}

// earlyExit is the error of a component that ended before it was ready, even with
// success.
func earlyExit(p *Process) error {
	if err := p.Wait(); err != nil {
		return err
	}
	return p.failure(errors.New(p.name + " ended"))
}

// get sends one request.
func (b *controlPlane) get(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	response, err := b.client.Do(request)
	if err != nil {
		return err // the error has the method and the URL
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, response.Status)
	}
	return nil
}
