package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/cache"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/diff"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/kube"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/tracing"
	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/krake-observer/krake-observer/test/bench/workload"
)

// workers is how many Applications are compared at once. Argo CD's default is twenty.
const workers = 20

// loop guards the objects of a set, grouped in Applications.
type loop struct {
	options *workload.Options
	kind    workload.Kind
	config  *rest.Config
	kubectl *kube.KubectlCmd
	cache   cache.ClusterCache
	queue   workqueue.TypedInterface[int]

	// targets are the desired objects of each Application; of has the Application of an
	// object.
	targets [][]*unstructured.Unstructured
	of      map[kube.ResourceKey]int
	write   kube.ResourceOperations
}

func newLoop(config *rest.Config, kind workload.Kind, options *workload.Options) *loop {
	l := &loop{
		options: options, kind: kind, config: config, queue: workqueue.NewTyped[int](), of: map[kube.ResourceKey]int{},
		kubectl: &kube.KubectlCmd{Log: logr.Discard(), Tracer: tracing.NopTracer{}},
	}
	l.cache = cache.NewClusterCache(config,
		cache.SetLogr(logr.Discard()), cache.SetKubectl(l.kubectl),
		cache.SetPopulateResourceInfoHandler(func(object *unstructured.Unstructured, _ bool) (any, bool) {
			return nil, object.GetLabels()[workload.SetLabel] == options.Set // Argo CD caches the objects of Applications
		}),
	)
	return l
}

func (l *loop) run(ctx context.Context) error {
	if err := l.cache.EnsureSynced(); err != nil {
		return fmt.Errorf("fill the cache: %w", err)
	}
	defer l.cache.Invalidate()
	l.takeTargets()
	write, done, err := l.kubectl.ManageResources(l.config)
	if err != nil {
		return err
	}
	defer done()
	l.write = write
	unsubscribe := l.cache.OnResourceUpdated(func(now, _ *cache.Resource, _ map[kube.ResourceKey]*cache.Resource) {
		if now == nil {
			return
		}
		if application, ok := l.of[now.ResourceKey()]; ok {
			l.queue.Add(application)
		}
	})
	defer unsubscribe()
	for application := range l.targets {
		l.queue.Add(application)
	}
	group, ctx := errgroup.WithContext(ctx)
	for range workers {
		group.Go(func() error { return l.work(ctx) })
	}
	group.Go(func() error {
		<-ctx.Done()
		l.queue.ShutDown()
		return ctx.Err()
	})
	return group.Wait()
}

// takeTargets copies the existing objects as desired ones, and groups them in
// Applications by name.
func (l *loop) takeTargets() {
	found := l.cache.FindResources("", func(r *cache.Resource) bool {
		return r.Resource != nil && r.Resource.GetLabels()[workload.SetLabel] == l.options.Set &&
			strings.HasPrefix(r.Ref.Name, l.options.Set+"-")
	})
	var keys []kube.ResourceKey
	for key := range found {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b kube.ResourceKey) int { return strings.Compare(a.Name, b.Name) })
	for i, key := range keys {
		target := &unstructured.Unstructured{Object: l.kind.Manifest(l.options.Set, key.Name)}
		target.SetNamespace(key.Namespace)
		if i%l.options.PerApplication == 0 {
			l.targets = append(l.targets, nil)
		}
		l.of[key] = len(l.targets) - 1
		l.targets[len(l.targets)-1] = append(l.targets[len(l.targets)-1], target)
	}
}

func (l *loop) work(ctx context.Context) error {
	for {
		application, over := l.queue.Get()
		if over {
			return ctx.Err()
		}
		err := l.sync(ctx, application)
		l.queue.Done(application)
		if err != nil {
			return err
		}
	}
}

// sync compares the objects of an Application, and applies those that differ.
func (l *loop) sync(ctx context.Context, application int) error {
	targets := l.targets[application]
	isOurs := func(r *cache.Resource) bool {
		of, ok := l.of[r.ResourceKey()]
		return ok && of == application
	}
	live, err := l.cache.GetManagedLiveObjs(targets, isOurs)
	if err != nil {
		return err
	}
	var lives []*unstructured.Unstructured
	for _, target := range targets {
		lives = append(lives, live[kube.GetResourceKey(target)])
	}
	differences, err := diff.DiffArray(targets, lives, diff.WithLogr(logr.Discard()))
	if err != nil {
		return fmt.Errorf("compare: %w", err)
	}
	for i, difference := range differences.Diffs {
		if !difference.Modified {
			continue
		}
		if _, err := l.write.ApplyResource(ctx, targets[i].DeepCopy(), cmdutil.DryRunNone, false, false, true, "gitops"); err != nil {
			return fmt.Errorf("apply: %w", err)
		}
	}
	return nil
}
