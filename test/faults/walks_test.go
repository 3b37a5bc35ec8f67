package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/faults/results"
	"github.com/krake-observer/krake-observer/test/kit"
)

// An Application changes from one spec to the next, some of which the API server refuses.
// It recovers from each. At the end its objects are those of a new Application with the
// last spec: earlier specs leave nothing behind.
func TestWalks(t *testing.T) {
	kit.Long(t, "random walks")
	t.Parallel()
	lanes := newLanes(t, "walks", 4)
	var tales []*tale
	for number := range byTier(10, 500) {
		tales = append(tales, walk(number+1, byTier(8, 20)))
	}
	playTales(t, lanes, remaining(tales))
}

// walk returns the tale of an Application with this many specs.
func walk(number, steps int) *tale {
	point := results.Point{Block: "walks of specs", Scenario: fmt.Sprintf("%d specs", steps), Mode: "none", Place: fmt.Sprintf("number %d", number), Round: 1}
	random := chance(point)
	life := []sentence{creates(randomSpec(random, true)...)}
	for range steps - 2 {
		life = append(life, says(randomSpec(random, random.IntN(6) > 0)...))
	}
	life = append(life, says(randomSpec(random, true)...), isAsNew())
	return &tale{Point: point, scenario: scenario{name: "walk", life: life}, met: func() bool { return true }}
}

// randomSpec returns random objects. Unless good, the API server refuses one of them.
func randomSpec(random *rand.Rand, good bool) []string {
	all := []string{
		fmt.Sprintf("configmap %d", random.IntN(4)), fmt.Sprintf("service %d", 80+random.IntN(4)), fmt.Sprintf("deployment main:%d", random.IntN(4)),
	}
	if !good {
		all[1] = refusedService
	}
	var spec []string
	for _, each := range all {
		if each == refusedService || random.IntN(3) > 0 {
			spec = append(spec, each)
		}
	}
	if len(spec) == 0 {
		return all[:1]
	}
	return spec
}

// refusedService has an invalid port.
const refusedService = "service 70000"

// isAsNew: a new Application with the same spec has the same objects.
func isAsNew() sentence {
	return func(ctx context.Context, a *app) error {
		another := a.lane.appOf(a.Name + "-new")
		another.say(a.said)
		if err := another.create(ctx, another.manifest()); err != nil {
			return err
		}
		if err := a.lane.await(ctx, another.stands); err != nil {
			return fmt.Errorf("the new one: %w", err)
		}
		for kind := range a.spec {
			old, err := a.plain(ctx, kind)
			if err != nil {
				return err
			}
			fresh, err := another.plain(ctx, kind)
			if err != nil {
				return err
			}
			if diff := cmp.Diff(fresh, old); diff != "" {
				return fmt.Errorf("what has been left its marks on %s (-new +old):\n%s", kind, diff)
			}
		}
		if err := another.delete(ctx); err != nil {
			return err
		}
		return a.lane.await(ctx, another.gone)
	}
}

// plain returns an object without its name, and without the fields that differ between
// objects.
func (a *app) plain(ctx context.Context, kind string) (object, error) {
	live, err := env.Dynamic.Resource(a.resource(kind)).Namespace(a.home()).Get(ctx, a.named(kind).Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	for _, path := range [][]string{
		{"metadata", "uid"}, {"metadata", "resourceVersion"}, {"metadata", "generation"}, {"metadata", "managedFields"}, {"metadata", "creationTimestamp"},
		{"metadata", "annotations", application.OwnerUIDAnnotation}, {"metadata", "labels", application.OwnedByLabel},
		{"metadata", "annotations", "deployment.kubernetes.io/revision"}, {"status"}, {"spec", "clusterIP"}, {"spec", "clusterIPs"},
	} {
		unstructured.RemoveNestedField(live.Object, path...)
	}
	text, err := json.Marshal(live.Object)
	if err != nil {
		return nil, err
	}
	var plain object
	err = json.Unmarshal([]byte(strings.ReplaceAll(string(text), a.prefix, "NAME")), &plain)
	return plain, err
}
