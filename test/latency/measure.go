package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/test/kit"
	"github.com/krake-observer/krake-observer/test/latency/workload"
)

// turn is the number of requests that one kind posts in its turn.
const turn = 4

// setting is the setting of a comparison.
type setting struct {
	size   int // of the manifest, in KiB
	atOnce int // concurrent requests
}

// cell is a kind under a setting.
type cell struct {
	setting

	kind kind
}

// measure runs a turn of each cell in each round.
func (w *world) measure(ctx context.Context, options Options, log io.Writer) (results, error) {
	r := results{
		Options: options,
		took:    map[cell][][]time.Duration{}, phases: map[cell]sums{}, decoding: map[int][]time.Duration{}, computing: map[int][]time.Duration{},
	}
	random := rand.New(rand.NewPCG(options.Seed, 0))
	for _, atOnce := range []int{1, turn} {
		cells := cellsOf(options.Sizes, atOnce)
		for round := range options.Rounds {
			random.Shuffle(len(cells), func(i, j int) { cells[i], cells[j] = cells[j], cells[i] })
			for _, c := range cells {
				if err := w.take(ctx, c, fmt.Sprintf("%d-%d", atOnce, round), r); err != nil {
					return results{}, err
				}
			}
			fmt.Fprintf(log, "latency: round %d of %d, %d at once\n", round+1, options.Rounds, atOnce)
		}
	}
	return r, nil
}

func cellsOf(sizes []int, atOnce int) []cell {
	var cells []cell
	for _, size := range sizes {
		for _, k := range kinds() {
			cells = append(cells, cell{setting{size, atOnce}, k})
		}
	}
	return cells
}

// take measures one turn. One request before it does not count: for any kind, because
// the first after another kind is slower, and for cached, because it fills the cache of
// rights.
func (w *world) take(ctx context.Context, c cell, round string, into results) (err error) {
	name := func(n int) string { return fmt.Sprintf("%s-%d-%d-%d", round, c.size, c.kind, n) }
	var requests [turn + 1]request
	for n := range requests {
		requests[n] = newRequest(c.kind, c.size, name(n))
		if c.kind == cached {
			requests[n].user = name(0)
		}
	}
	if _, err := w.poster.post(ctx, requests[turn], dryRun); err != nil {
		return err
	}
	before, err := w.metrics.read(ctx)
	if err != nil {
		return err
	}
	took, err := w.post(ctx, c, requests[:turn])
	if err != nil {
		return err
	}
	into.took[c] = append(into.took[c], took)
	if c.kind.isOurs() {
		if err := w.addPhases(ctx, c, before, into); err != nil {
			return err
		}
	}
	return w.client.CoreV1().ConfigMaps(namespace).DeleteCollection(ctx, metav1.DeleteOptions{},
		metav1.ListOptions{FieldSelector: "metadata.name!=kube-root-ca.crt"})
}

// post posts the cell's number of concurrent requests.
func (w *world) post(ctx context.Context, c cell, requests []request) ([]time.Duration, error) {
	took := make([]time.Duration, len(requests))
	workers, ctx := errgroup.WithContext(ctx)
	workers.SetLimit(c.atOnce)
	for n, request := range requests {
		workers.Go(func() error {
			answer, err := w.poster.post(ctx, request, "")
			if err != nil {
				return err
			}
			took[n] = answer.took
			return answer.treated(c.kind)
		})
	}
	return took, workers.Wait()
}

// addPhases adds the webhook's times of the turn. The webhook does not report decoding
// as a part of computing, so both are also run here.
func (w *world) addPhases(ctx context.Context, c cell, before sums, into results) error {
	after, err := w.metrics.read(ctx)
	if err != nil {
		return err
	}
	if into.phases[c] == nil {
		into.phases[c] = sums{}
	}
	after.since(before, into.phases[c])
	if c.atOnce > 1 {
		return nil
	}
	text := workload.Manifest(c.size<<10, 1)
	app := kit.Application(namespace, "app", text)
	started := time.Now()
	if _, err := manifest.Decode([]byte(text)); err != nil {
		return err
	}
	decoded := time.Now()
	mutate.PrepareForCreate(app)
	into.decoding[c.size] = append(into.decoding[c.size], decoded.Sub(started))
	into.computing[c.size] = append(into.computing[c.size], time.Since(decoded))
	return nil
}
