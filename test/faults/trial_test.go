package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// tally counts trials.
type tally struct {
	mu                 sync.Mutex
	played, met, wrong int
}

func lines(calls []proxy.Call) string {
	texts := make([]string, 0, len(calls))
	for _, call := range calls {
		texts = append(texts, call.String())
	}
	return strings.Join(texts, "\n")
}
