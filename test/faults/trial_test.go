package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/test/faults/proxy"
)

// step is something that the user does, and what has to be there in the end.
type step struct {
	do   func(context.Context) error
	want []object
	// also is what else has to hold before the user goes on, if anything.
	also func(context.Context) error
}

// lifecycle is the life of an Application: one of its objects is taken out of
// the spec, the two others are changed.
func (a *app) lifecycle() []step {
	first := []object{a.configMap("1"), a.service(80), a.deployment("main:1")}
	second := []object{a.service(81), a.deployment("main:2")}
	return []step{
		{do: func(ctx context.Context) error { return a.create(ctx, first) }, want: first},
		{do: func(ctx context.Context) error { return a.update(ctx, second) }, want: second, also: a.settled},
		{do: a.delete, also: a.gone},
	}
}

// troubles is its life with somebody who changes an object and deletes another.
func (a *app) troubles() []step {
	life := a.lifecycle()
	return []step{
		life[0],
		{do: a.drift, want: life[0].want},
		{do: a.remove, want: life[0].want},
		life[1], life[2],
	}
}

// drift changes a field of the Service.
func (a *app) drift(ctx context.Context) error {
	return change(ctx, services, a.named("service"), `{"spec": {"ports": [{"port": 90}]}}`)
}

// remove deletes the Deployment.
func (a *app) remove(ctx context.Context) error {
	name := a.named("deployment")
	a.removed[name.Name]++
	return env.client.Resource(deployments).Namespace(name.Namespace).Delete(ctx, name.Name, metav1.DeleteOptions{})
}

// gone complains while the Application is there.
func (a *app) gone(ctx context.Context) error {
	read, err := a.read(ctx)
	if err == nil && read != nil {
		return fmt.Errorf("the Application %s is still there, with %v", a, read.Inventory)
	}
	return err
}

// trial is what goes wrong in the life of one Application.
type trial struct {
	name string
	// hold: an agent that was killed stays down until the user has made the next
	// step.
	hold bool
	// fresh: the agent starts with the trial.
	fresh bool
	steps func(*app) []step
	call  func(*lane, *app, proxy.Call) *proxy.Fault
	event func(proxy.Event) proxy.Verdict
	// met tells whether anything went wrong at all.
	met func() bool
}

// play plays a trial, and looks at what holds after each step and in the end.
func (l *lane) play(ctx context.Context, trial trial) error {
	a := l.newApp()
	begin := l.proxy.Mark()
	if trial.fresh {
		if err := l.agent.kill(); err != nil {
			return err
		}
	}
	l.proxy.Intercept(func(call proxy.Call) *proxy.Fault {
		if trial.call == nil {
			return nil
		}
		return trial.call(l, a, call)
	})
	l.proxy.Filter(func(event proxy.Event) proxy.Verdict {
		if trial.event == nil || !a.owns(event.Name) {
			return proxy.Pass
		}
		return trial.event(event)
	})
	if err := l.walk(ctx, a, trial, begin); err != nil {
		return err
	}
	l.done[a.Name] = l.proxy.Mark()
	return a.onceEach(l.proxy.Since(begin))
}

func (l *lane) walk(ctx context.Context, a *app, trial trial, begin int) error {
	var theirs *unstructured.Unstructured
	steps := trial.steps(a)
	for i, step := range steps {
		if err := step.do(ctx); err != nil {
			return err
		}
		if theirs == nil {
			var err error
			if theirs, err = a.foreign(ctx); err != nil {
				return err
			}
		}
		if err := l.agent.start(); err != nil {
			return err
		}
		reached, err := l.reach(ctx, a, step, trial.hold && i+1 < len(steps))
		if err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
		if err := unharmed(ctx, theirs); err != nil {
			return err
		}
		if reached {
			if err := a.noneWanted(l.proxy.Since(begin), step.want); err != nil {
				return err
			}
		}
	}
	return nil
}

// reach waits until all is as the step wants it. If the agent is down, it is
// started again; or, if it is to be held, that is all there is to wait for.
func (l *lane) reach(ctx context.Context, a *app, step step, hold bool) (reached bool, err error) {
	reached = true
	err = l.await(ctx, func(ctx context.Context) error {
		if l.agent.down() {
			if reached = !hold; hold {
				return nil
			}
			return errors.Join(errors.New("the agent was down"), l.agent.start())
		}
		if err := a.check(ctx, step.want); err != nil || step.also == nil {
			return err
		}
		return step.also(ctx)
	})
	return reached, err
}

// onceEach complains if an object was created more than once, not counting what
// the user has deleted: the agent deletes none but those that the spec has no
// more.
func (a *app) onceEach(calls []proxy.Call) error {
	created := map[string]int{}
	for _, call := range calls {
		if call.Verb != "create" || call.IsEvent() || !call.Accepted() {
			continue
		}
		var body struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		}
		if err := json.Unmarshal(call.Body, &body); err != nil {
			return fmt.Errorf("the body of %s: %w", call, err)
		}
		created[body.Metadata.Name]++
		if created[body.Metadata.Name] > 1+a.removed[body.Metadata.Name] {
			return fmt.Errorf("created twice: %s %s", call.Resource, body.Metadata.Name)
		}
	}
	return nil
}

// noneWanted complains if an object was deleted that is wanted.
func (a *app) noneWanted(calls []proxy.Call, wanted []object) error {
	for _, call := range calls {
		if call.Verb != "delete" || !call.Accepted() {
			continue
		}
		for _, want := range wanted {
			kind, _ := want["kind"].(string)
			metadata, _ := want["metadata"].(object)
			if resources[kind].Resource == call.Resource && metadata["name"] == call.Name {
				return fmt.Errorf("deleted although the spec has it: %s", call)
			}
		}
	}
	return nil
}

// late gives the writes about Applications after they were gone.
func (l *lane) late() []string {
	var complaints []string
	for name, from := range l.done {
		for _, call := range l.proxy.Since(from) {
			if call.IsWrite() && !call.IsEvent() && belongs(call.Name, name) {
				complaints = append(complaints, fmt.Sprintf("after the end of %s: %s", name, call))
			}
		}
	}
	slices.Sort(complaints)
	return complaints
}

// playAll plays the trials, in all lanes at once, and says how many there were.
func playAll(t *testing.T, lanes []*lane, trials []trial) {
	t.Helper()
	queue := make(chan trial, len(trials))
	for _, trial := range trials {
		queue <- trial
	}
	close(queue)
	start, played := time.Now(), &tally{}
	var all sync.WaitGroup
	for _, l := range lanes {
		all.Go(func() {
			for trial := range queue {
				begin := l.proxy.Mark()
				err := l.play(t.Context(), trial)
				if err != nil {
					t.Errorf("%s: %v; the calls were\n%s", trial.name, err, lines(l.proxy.Since(begin)))
				}
				played.add(trial, err)
			}
			for _, complaint := range l.late() {
				t.Error(complaint)
			}
		})
	}
	all.Wait()
	t.Logf("%s in %s", played, time.Since(start).Round(time.Second))
}

// tally counts trials.
type tally struct {
	mu                 sync.Mutex
	played, met, wrong int
}

func (c *tally) add(trial trial, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.played++
	if trial.met() {
		c.met++
	}
	if err != nil {
		c.wrong++
	}
}

func (c *tally) String() string {
	return fmt.Sprintf("%d trials, of which something went wrong in %d, and %d ended otherwise than they should", c.played, c.met, c.wrong)
}

func lines(calls []proxy.Call) string {
	texts := make([]string, 0, len(calls))
	for _, call := range calls {
		texts = append(texts, call.String())
	}
	return strings.Join(texts, "\n")
}
