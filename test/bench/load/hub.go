package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/krake-observer/krake-observer/internal/agent"
	"github.com/krake-observer/krake-observer/internal/enrol"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/kit"
	"github.com/krake-observer/krake-observer/test/program"
)

// applicationsEach is the number of Applications of a cluster of the hub.
const applicationsEach = 20

// spokes are the agents of many clusters, all in this process. Each cluster is enrolled on the hub as by kubectl krake enrol,
// and is a namespace of another API server.
type spokes struct {
	w       *world
	target  *rest.Config
	hubs    []*rest.Config
	stop    context.CancelFunc
	running sync.WaitGroup
	// failed receives why an agent has ended unasked.
	failed context.CancelCauseFunc
}

func spokeOf(i int) string { return fmt.Sprintf("spoke-%d", i) }

// hubScenario measures what many agents cost their hub: at their start, at rest, and when all start again at once.
func (w *world) hubScenario(ctx context.Context, _ *set) (err error) {
	target, err := cluster.Start(ctx, cluster.Options{Log: w.log, AuditPolicy: auditPolicy})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Stop()) }()
	ctx, failed := context.WithCancelCause(ctx)
	defer failed(nil)
	s := &spokes{w: w, target: target.RESTConfig(), hubs: make([]*rest.Config, w.Clusters), failed: failed, stop: func() {}}
	s.target.QPS = -1 // as in the command
	defer s.halt()
	if err := program.Each(ctx, w.Clusters, atOnce, s.enrol); err != nil {
		return err
	}
	for _, phase := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"start", s.start}, {"applications", s.create}, {"idle", s.rest}, {"restart", s.restart},
	} {
		taken, err := s.measured(func() error { return phase.do(ctx) })
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", phase.name, err), context.Cause(ctx))
		}
		name := fmt.Sprintf("Hub/clusters=%d/phase=%s", w.Clusters, phase.name)
		w.report.add(name, ours, taken)
		if writes := taken["writes"]; writes > 0 && (phase.name == "idle" || phase.name == "restart") {
			w.report.wrong = append(w.report.wrong, fmt.Errorf("%s: agents without work make %g writes", name, writes))
		}
	}
	return nil
}

// measured returns what the agents ask the hub, and what it uses, meanwhile.
func (s *spokes) measured(act func() error) (sample, error) {
	meter, err := s.w.meter()
	if err != nil {
		return nil, err
	}
	if err := act(); err != nil {
		return nil, err
	}
	used, err := meter.read()
	if err != nil {
		return nil, err
	}
	server, err := usageOf(s.w.cluster.Newest("kube-apiserver").PID())
	if err != nil {
		return nil, err
	}
	long := used.long.Seconds()
	taken := sample{
		"s": long, "server-%-of-core": 100 * used.server.Seconds() / long, "server-MiB": mebibytes(server.resident),
		"heap-MiB/agent": heap() / float64(s.w.Clusters), "writes": 0,
	}
	requests, err := meter.mark.FindNaming([]string{kit.AgentUser("spoke-")}, kit.Request.IsAgents)
	for _, r := range requests {
		switch {
		case r.IsWork():
			taken["writes"]++
		case r.Object.Resource == "leases":
			taken["leases/s"] += 1 / long
		case r.Verb == "list":
			taken["lists/s"] += 1 / long
		}
	}
	return taken, err
}

// heap returns the memory of this process in MiB, without garbage.
func heap() float64 {
	runtime.GC()
	runtime.GC() // for objects with finalizers
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc+stats.StackInuse) / (1 << 20)
}

// enrol enrols a cluster.
func (s *spokes) enrol(ctx context.Context, i int) error {
	options := enrol.Options{
		Hub:     func() (*rest.Config, error) { return s.w.cluster.RESTConfig(), nil },
		Cluster: spokeOf(i), TokenDuration: 24 * time.Hour, Out: filepath.Join(s.w.cluster.Dir(), spokeOf(i)),
	}
	if err := enrol.Enrol(ctx, options, io.Discard); err != nil {
		return fmt.Errorf("enrol %s: %w", spokeOf(i), err)
	}
	hub, err := clientcmd.BuildConfigFromFlags("", filepath.Join(options.Out, "agent", "kubeconfig"))
	if err != nil {
		return err
	}
	hub.QPS = -1 // as in the command
	s.hubs[i] = apart(hub, spokeOf(i))
	client, err := kubernetes.NewForConfig(s.target)
	if err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: spokeOf(i)}}
	_, err = client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	return err
}

// apart makes a configuration differ, because client-go shares connections between clients of the same authority.
func apart(config *rest.Config, name string) *rest.Config {
	config = rest.CopyConfig(config)
	config.CAData = bytes.Join([][]byte{config.CAData, []byte(name), nil}, []byte("\n"))
	return config
}

// start starts all agents, and waits until each holds its Lease.
func (s *spokes) start(ctx context.Context) error {
	former, err := s.holders(ctx)
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	s.stop = stop
	for i := range s.hubs {
		s.running.Go(func() {
			if err := s.run(running, i); err != nil {
				s.failed(fmt.Errorf("agent of %s: %w", spokeOf(i), err))
			}
		})
	}
	return s.await(ctx, func() (bool, error) {
		now, err := s.holders(ctx)
		for i := range s.hubs {
			if lease := application.HubLease(spokeOf(i)); now[lease] == "" || now[lease] == former[lease] {
				return false, err
			}
		}
		return true, err
	})
}

func (s *spokes) run(ctx context.Context, i int) error {
	var options agent.Options
	flags := pflag.NewFlagSet(spokeOf(i), pflag.ContinueOnError)
	options.AddFlags(flags)
	name := spokeOf(i)
	err := errors.Join(flags.Parse([]string{
		"--cluster", name, "--hub-namespaces", name, "--namespaces", name, "--namespace", name, "--metrics-bind-address", "0", "--health-probe-bind-address", "0",
	}), options.Validate())
	if err != nil {
		return err
	}
	return agent.RunWith(ctx, options, agent.Configs{Hub: s.hubs[i], Target: apart(s.target, name), Logger: logr.Discard()})
}

// holders returns the holders of the Leases on the hub.
func (s *spokes) holders(ctx context.Context) (map[string]string, error) {
	leases, err := s.w.client.CoordinationV1().Leases(application.AgentsNamespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	holders := map[string]string{}
	for _, lease := range leases.Items {
		if holder := lease.Spec.HolderIdentity; holder != nil {
			holders[lease.Name] = *holder
		}
	}
	return holders, nil
}

// halt ends all agents.
func (s *spokes) halt() {
	s.stop()
	s.running.Wait()
}

// create creates the Applications, of one object each, and waits until all are carried out and told.
func (s *spokes) create(ctx context.Context) error {
	err := program.Each(ctx, applicationsEach*s.w.Clusters, atOnce, func(ctx context.Context, i int) error {
		manifest := fmt.Sprintf(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "object-%d"}, "data": {"key": "value"}}`, i)
		name := spokeOf(i % s.w.Clusters)
		return s.w.admitted(ctx, kit.Application(name, fmt.Sprintf("%s%d", applicationPrefix, i), manifest, kit.On(name)))
	})
	if err != nil {
		return err
	}
	err = s.await(ctx, func() (bool, error) {
		left, err := s.w.client.CoreV1().ConfigMaps(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
			LabelSelector: application.ClusterLabel + "," + application.StateLabel + "!=" + string(application.StateRunning), Limit: 1,
		})
		return err == nil && len(left.Items) == 0, err
	})
	return errors.Join(err, program.Pause(ctx, 10*time.Second))
}

// rest lets some time pass.
func (s *spokes) rest(ctx context.Context) error {
	return program.Pause(ctx, time.Duration(s.w.Seconds)*time.Second)
}

// restart starts all agents again, as after an outage.
func (s *spokes) restart(ctx context.Context) error {
	s.halt()
	return errors.Join(s.start(ctx), program.Pause(ctx, 10*time.Second))
}

// await calls done once a second until it reports true.
func (s *spokes) await(ctx context.Context, done func() (bool, error)) error {
	for {
		if is, err := done(); is || err != nil {
			return err
		}
		if err := program.Pause(ctx, time.Second); err != nil {
			return err
		}
	}
}
