package faults

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/krake-observer/krake-observer/test/faults/proxy"
)

// gone returns an error while the Application exists.
func (a *app) gone(ctx context.Context) error {
	read, err := a.read(ctx)
	if err == nil && read != nil {
		return fmt.Errorf("the Application %s is still there, with %v", a, read.Inventory)
	}
	return err
}

// onceEach returns an error if an object was created more than once, not counting those
// that the user deleted: the agent deletes only objects that the spec no longer has.
func (a *app) onceEach(calls []proxy.Call) error {
	created := map[string]int{}
	for _, call := range calls {
		if call.Verb != "create" || call.IsEvent() || !call.Accepted() {
			continue
		}
		name := call.Subject()
		if name == "" {
			return fmt.Errorf("no name in the body of %s", call)
		}
		if created[name]++; created[name] > 1+a.removed[name] {
			return fmt.Errorf("created twice: %s %s", call.Resource, name)
		}
	}
	return nil
}

// noneWanted returns an error if a wanted object was deleted.
func (a *app) noneWanted(calls []proxy.Call) error {
	for _, call := range calls {
		if call.Verb != "delete" || !call.Accepted() {
			continue
		}
		for kind := range a.spec {
			if a.resource(kind).Resource == call.Resource && a.named(kind).Name == call.Name {
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
