package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/krake-observer/krake-observer/internal/agent"
	"github.com/krake-observer/krake-observer/internal/enrol"
	"github.com/krake-observer/krake-observer/test/program"
)

// spoke is one of the simulated clusters: a namespace of the API server that all of
// them share as their target, and the hub's address for its agent.
type spoke struct {
	name string
	hub  *rest.Config
}

// enrolSpoke enrols a cluster as an administrator does, but reads the agent's files
// from a folder.
func (f *fleet) enrolSpoke(ctx context.Context, name, kubeconfig, folder string) (*spoke, error) {
	options := enrol.Options{
		Hub:     func() (*rest.Config, error) { return clientcmd.BuildConfigFromFlags("", kubeconfig) },
		Cluster: name, TokenDuration: 24 * time.Hour, Out: filepath.Join(folder, name),
	}
	if err := enrol.Enrol(ctx, options, io.Discard); err != nil {
		return nil, fmt.Errorf("enrol %s: %w", name, err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(options.Out, "agent", "kubeconfig"))
	if err != nil {
		return nil, err
	}
	config.QPS = -1 // as in the command
	// client-go shares connections between clients of the same authority. Each agent
	// must have its own.
	config.CAData = bytes.Join([][]byte{config.CAData, []byte(name), nil}, []byte("\n"))
	client, err := kubernetes.NewForConfig(f.target)
	if err != nil {
		return nil, err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err = client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	return &spoke{name: name, hub: rest.AddUserAgent(config, "krake-agent")}, err
}

// options returns the options of the agent, as the flags set them.
func (s *spoke) options() (agent.Options, error) {
	var options agent.Options
	flags := pflag.NewFlagSet(s.name, pflag.ContinueOnError)
	options.AddFlags(flags)
	err := flags.Parse([]string{
		"--cluster", s.name, "--hub-namespaces", s.name, "--namespaces", s.name, "--namespace", s.name, "--metrics-bind-address", "0", "--health-probe-bind-address", "0",
	})
	return options, errors.Join(err, options.Validate())
}

// run runs the agent of a cluster.
func (f *fleet) run(ctx context.Context, s *spoke) error {
	options, err := s.options()
	if err != nil {
		return err
	}
	err = agent.RunWith(ctx, options, agent.Configs{Hub: s.hub, Target: f.counted(), Logger: f.logger.WithValues("cluster", s.name)})
	if err != nil {
		return fmt.Errorf("agent of %s: %w", s.name, err)
	}
	return nil
}

// fleet are all clusters, and their agents while they run.
type fleet struct {
	// target is the API server on which each cluster has a namespace.
	target *rest.Config
	spokes []*spoke
	logger logr.Logger
	// fail receives the reason when an agent ends unasked.
	fail context.CancelCauseFunc

	stop    context.CancelFunc // nil while no agent runs
	running sync.WaitGroup

	mu    sync.Mutex
	asked counts // requests of the agents to the target
}

// enrol enrols this many clusters.
func (f *fleet) enrol(ctx context.Context, clusters int, kubeconfig, folder string) error {
	spokes := make([]*spoke, clusters)
	err := program.Each(ctx, clusters, atOnce, func(ctx context.Context, i int) (err error) {
		spokes[i], err = f.enrolSpoke(ctx, clusterOf(i), kubeconfig, folder)
		return err
	})
	f.spokes = spokes
	return err
}

// start starts all agents.
func (f *fleet) start(ctx context.Context) {
	ctx, f.stop = context.WithCancel(ctx)
	for _, s := range f.spokes {
		f.running.Go(func() {
			if err := f.run(ctx, s); err != nil {
				f.fail(err)
			}
		})
	}
}

// halt ends all agents, and waits for them.
func (f *fleet) halt() {
	if f.stop != nil {
		f.stop()
		f.stop = nil
	}
	f.running.Wait()
}

// counted returns a configuration for the target with a separate connection, which
// counts the requests.
func (f *fleet) counted() *rest.Config {
	config := rest.CopyConfig(f.target)
	config.QPS = -1 // as in the command
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper { return counter{f, inner} })
	return config
}

// counter counts requests.
type counter struct {
	fleet *fleet
	http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (c counter) RoundTrip(r *http.Request) (*http.Response, error) {
	c.fleet.mu.Lock()
	c.fleet.asked[requestTo(r)]++
	c.fleet.mu.Unlock()
	return c.RoundTripper.RoundTrip(r)
}

// paths parses a path as the API server does.
var paths = request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// requestTo names a request as the API server's metrics do: "list configmaps", and
// "get" without a resource.
func requestTo(r *http.Request) string {
	info, err := paths.NewRequestInfo(r)
	if err != nil {
		return err.Error()
	}
	return requestOf(map[string]string{"verb": info.Verb, "resource": info.Resource, "code": "200"})
}

// requests returns the requests of all agents to the target.
func (f *fleet) requests() counts {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.asked)
}

// drift changes one object at a time, in all clusters in turn, at this rate per minute,
// and returns the durations of the repairs. A repair that takes too long is an error.
func (f *fleet) drift(ctx context.Context, applications int, perMinute float64, long time.Duration) ([]time.Duration, error) {
	const patience = 30 * time.Second
	tick := time.NewTicker(time.Duration(float64(time.Minute) / perMinute))
	defer tick.Stop()
	end := time.After(long)
	var mu sync.Mutex
	var took []time.Duration
	group, ctx := errgroup.WithContext(ctx)
	for i := 0; ; i++ {
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			one, err := f.repaired(ctx, i%applications)
			mu.Lock()
			defer mu.Unlock()
			took = append(took, one)
			return err
		})
		select {
		case <-tick.C:
			continue
		case <-end:
		case <-ctx.Done():
		}
		err := group.Wait()
		slices.Sort(took)
		return took, err
	}
}

// repaired changes the object of an Application and waits until its agent has repaired
// it.
func (f *fleet) repaired(ctx context.Context, i int) (time.Duration, error) {
	objects, err := f.objects(i)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	changed, err := objects.Patch(ctx, nameOf(i), types.MergePatchType, []byte(changeOf(i)), metav1.PatchOptions{})
	if err != nil {
		return 0, err
	}
	watcher := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		options.FieldSelector = fields.OneTermEqualSelector("metadata.name", nameOf(i)).String()
		return objects.Watch(ctx, options)
	}}
	_, err = watchtools.Until(ctx, changed.GetResourceVersion(), watcher, func(event watch.Event) (bool, error) {
		object, ok := event.Object.(*unstructured.Unstructured)
		return ok && isWanted(object.Object), nil
	})
	return time.Since(start), err
}

// objects returns the client for an Application's kind in the namespace of its cluster.
func (f *fleet) objects(i int) (dynamic.ResourceInterface, error) {
	client, err := dynamic.NewForConfig(f.target)
	if err != nil {
		return nil, err
	}
	return client.Resource(schema.GroupVersionResource{Version: "v1", Resource: resourceOf(i)}).Namespace(f.spokes[i%len(f.spokes)].name), nil
}

// heap returns the used memory of this process, without garbage.
func heap() int64 {
	runtime.GC()
	runtime.GC() // for objects with finalizers
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc + stats.StackInuse) //nolint:gosec // less than all memory there is
}
