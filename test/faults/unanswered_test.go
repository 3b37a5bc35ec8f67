package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	agents "github.com/krake-observer/krake-observer/internal/agent"
	"github.com/krake-observer/krake-observer/internal/options"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
)

// Threat A39 of the security specification: the target refuses or does not answer at all. The agent
// calls it ever less often, reports the outage in each status, stays ready, and deletes nothing.
// When the target is back, the agent repairs what changed meanwhile.
func TestTargetThatDoesNotAnswerIsAskedEverLess(t *testing.T) {
	kit.Long(t, "back-off grows")
	const (
		crowd = 20
		// watched is how long the test counts calls after the statuses report the
		// outage. callsAMinute limits the calls for each Application.
		watched, callsAMinute = 15 * time.Second, 10
		// told limits the time until each status reports the outage, also the status of
		// an Application whose deletion the outage interrupts.
		told = 40 * time.Second
	)
	outages := []struct {
		name  string
		begin func(*installation.Wire) error
	}{
		{"it is cut off", func(wire *installation.Wire) error { wire.Cut(); return nil }},
		{"it swallows what it is sent", (*installation.Wire).Silence},
	}
	for i, outage := range outages {
		t.Run(outage.name, func(t *testing.T) {
			t.Parallel() // each mostly waits
			d := newDistant(t, fmt.Sprintf("a39-%d", i+1))
			apps, err := d.lane.crowd(t.Context(), crowd)
			kit.Must(t, err)
			kit.Must(t, eventually(t.Context(), func(ctx context.Context) error { return all(apps, func(a *app) error { return a.settled(ctx) }) }))
			going := d.large(t)
			before := d.uids(t, apps)

			began, from := time.Now(), d.wire.Connections()
			kit.Must(t, outage.begin(d.wire))
			kit.Must(t, going.delete(t.Context()))
			kit.Must(t, each(apps, func(a *app) error {
				return change(t.Context(), kit.Services, a.named("service"), `{"spec": {"ports": [{"port": 90}]}}`)
			}))
			kit.Must(t, eventually(t.Context(), func(ctx context.Context) error {
				return all(append(apps, going), func(a *app) error { return a.unreachable(ctx) })
			}))
			if since := time.Since(began); since > told {
				t.Errorf("all say so after %s, want %s at most", since.Round(time.Second), told)
			}
			for end := time.Now().Add(watched); time.Now().Before(end); <-time.After(time.Second) {
				if err := d.ready(t.Context()); err != nil {
					t.Errorf("the target is away: %v", err)
				}
			}
			tried, minutes := float64(d.wire.Connections()-from), time.Since(began).Minutes()
			t.Logf("%.0f connections were tried in %.1f minutes for %d Applications", tried, minutes, crowd)
			if tried > callsAMinute*crowd*minutes {
				t.Errorf("%.0f connections were tried in %.1f minutes, want %d a minute at most", tried, minutes, callsAMinute*crowd)
			}

			kit.Must(t, d.wire.Mend())
			back := time.Now()
			kit.Must(t, eventually(t.Context(), func(ctx context.Context) error {
				return all(apps, func(a *app) error { return errors.Join(a.settled(ctx), a.check(ctx, a.objects())) })
			}))
			kit.Must(t, eventually(t.Context(), going.gone))
			t.Logf("all is as it should be %s after the target was back", time.Since(back).Round(time.Second))
			for name, uid := range d.uids(t, apps) {
				if before[name] != uid {
					t.Errorf("%s was made anew", name)
				}
			}
		})
	}
}

// distant is an agent in this process with a target behind a faulty connection, and a
// hub that always answers.
type distant struct {
	lane   *lane
	wire   *installation.Wire
	health string
}

func newDistant(t *testing.T, name string) *distant {
	t.Helper()
	kit.Must(t, env.installation.Look())
	kit.Must(t, appoint(t.Context(), name))
	direct, err := env.installation.AgentKubeconfig(t.Context(), name)
	kit.Must(t, err)
	wire, err := installation.NewWire(env.RESTConfig())
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, wire.Close()) })
	through := filepath.Join(env.Dir(), name+".kubeconfig")
	kit.Must(t, wire.WriteKubeconfig(direct, through))
	d := &distant{lane: &lane{name: name, namespace: name}, wire: wire, health: freeAddress(t)}
	d.run(t, direct, through)
	kit.Must(t, eventually(t.Context(), d.ready))
	return d
}

// large makes an Application of many objects, and waits until it runs.
func (d *distant) large(t *testing.T) *app {
	t.Helper()
	a := d.lane.newApp()
	var objects []object
	for i := range 12 {
		objects = append(objects, object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"name": fmt.Sprintf("%s-%d", a.Name, i)}})
	}
	kit.Must(t, a.create(t.Context(), objects))
	kit.Must(t, eventually(t.Context(), a.settled))
	return a
}

// run runs the agent until the test ends.
func (d *distant) run(t *testing.T, hub, target string) {
	t.Helper()
	var set agents.Options
	flags := pflag.NewFlagSet("agent", pflag.ContinueOnError)
	set.AddFlags(flags)
	kit.Must(t, flags.Parse([]string{"--cluster", d.lane.name, "--metrics-bind-address=0", "--health-probe-bind-address", d.health}))
	var configs agents.Configs
	var err error
	configs.Logger = logr.Discard()
	configs.Hub, err = (&options.Connection{Kubeconfig: hub}).Config("krake-agent")
	kit.Must(t, err)
	configs.Target, err = (&options.Connection{Kubeconfig: target}).Config("krake-agent")
	kit.Must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- agents.RunWith(ctx, set, configs) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the agent: %v", err)
		}
	})
}

// ready returns an error if the agent is not ready.
func (d *distant) ready(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.health+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("the agent does not say if it is ready: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the agent is not ready: %s", response.Status)
	}
	return nil
}

// uids returns the UIDs of the objects, by name.
func (d *distant) uids(t *testing.T, apps []*app) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, a := range apps {
		live, err := get(t.Context(), kit.Services, a.named("service"))
		kit.Must(t, err)
		if live != nil {
			found[live.GetName()] = string(live.GetUID())
		}
	}
	return found
}

// unreachable returns an error unless the Application reports that its target does not
// answer.
func (a *app) unreachable(ctx context.Context) error {
	read, err := a.read(ctx)
	if err != nil {
		return err
	}
	ready := meta.FindStatusCondition(read.Status.Conditions, application.ReadyCondition)
	if ready == nil || ready.Status != metav1.ConditionUnknown || ready.Reason != "TargetUnreachable" {
		return fmt.Errorf("Application %s says %v", a, read.Status.Conditions)
	}
	return nil
}

// all returns the error of the first Application that fails the check.
func all(apps []*app, check func(*app) error) error {
	for _, a := range apps {
		if err := check(a); err != nil {
			return err
		}
	}
	return nil
}

// eventually repeats the check until it returns nil.
func eventually(ctx context.Context, check func(context.Context) error) error {
	for deadline := time.Now().Add(timeout); ; {
		err := check(ctx)
		switch {
		case err == nil:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("after %s: %w", timeout, err)
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := cluster.FreeAddress()
	kit.Must(t, err)
	return address
}
