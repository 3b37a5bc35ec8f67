package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// Threat A29 of the security specification: one Application among thirty is poison, each time in another
// way. All others are carried out, the agent lives, and the poisoned one reports what is wrong.
func TestPoisonHarmsNoOtherApplication(t *testing.T) {
	kit.Long(t, "a large crowd")
	t.Parallel()
	const others = 29
	poisons := []struct {
		name   string
		poison func(*lane, *app) error
		// keeps: what was carried out before stays unchanged.
		keeps bool
	}{
		{keeps: true, name: "what was learned does not parse", poison: func(l *lane, a *app) error {
			return l.corrupt(t.Context(), a, application.LearnedKey)
		}},
		{keeps: true, name: "its inventory does not parse", poison: func(l *lane, a *app) error {
			return l.corrupt(t.Context(), a, application.InventoryKey(l.name))
		}},
		{name: "the API server refuses an object", poison: func(_ *lane, a *app) error {
			return a.create(t.Context(), []object{a.service(70000), a.configMap("1")})
		}},
		{name: "a kind is not served", poison: func(_ *lane, a *app) error {
			return a.create(t.Context(), []object{
				{"apiVersion": "faults.example.org/v1", "kind": "Nothing", "metadata": object{"name": a.Name + "-nothing"}},
				a.configMap("1"),
			})
		}},
		{name: "an object is somebody else's", poison: func(_ *lane, a *app) error {
			theirs := &unstructured.Unstructured{Object: a.configMap("theirs")}
			_, err := env.Dynamic.Resource(kit.ConfigMaps).Namespace(a.Namespace).Create(t.Context(), theirs, metav1.CreateOptions{})
			return errors.Join(err, a.create(t.Context(), a.objects()))
		}},
	}
	for i, p := range poisons {
		t.Run(p.name, func(t *testing.T) {
			l := newLane(t, fmt.Sprintf("a29-%d", i+1))
			a := l.newApp()
			kit.Must(t, p.poison(l, a))
			apps, err := l.crowd(t.Context(), others)
			kit.Must(t, err)
			kit.Must(t, l.awaitAll(t.Context(), apps))
			kit.Must(t, l.await(t.Context(), a.complains))
			if p.keeps {
				kit.Must(t, a.check(t.Context(), a.objects()))
			}
		})
	}
}

// complains returns an error unless the Application reports that something is wrong.
func (a *app) complains(ctx context.Context) error {
	live, err := get(ctx, kit.ConfigMaps, a.NamespacedName)
	if err != nil {
		return err
	}
	if live.GetLabels()[application.StateLabel] == string(application.StateRunning) {
		return fmt.Errorf("the poisoned Application %s is said to run", a)
	}
	text, _, err := unstructured.NestedString(live.Object, "data", application.StatusKey)
	if err != nil {
		return err
	}
	var status application.Status
	if err := json.Unmarshal([]byte(text), &status); err != nil {
		return fmt.Errorf("the status of %s: %w", a, err)
	}
	if ready := meta.FindStatusCondition(status.Conditions, application.ReadyCondition); ready == nil || ready.Status != metav1.ConditionFalse {
		return fmt.Errorf("the poisoned Application %s does not say what is wrong: %v", a, status.Conditions)
	}
	return nil
}

// corrupt makes an Application, and then makes one of its documents unreadable, which
// only its agent may write. A new agent finds that document.
func (l *lane) corrupt(ctx context.Context, a *app, key string) error {
	if err := a.create(ctx, a.objects()); err != nil {
		return err
	}
	if err := l.awaitAll(ctx, []*app{a}); err != nil {
		return err
	}
	return errors.Join(l.agent.kill(), l.forge(ctx, a, fmt.Sprintf(`{"data": {%q: "{"}}`, key)), l.agent.start())
}

// forge patches an Application as its agent.
func (l *lane) forge(ctx context.Context, a *app, patch string) error {
	config := env.RESTConfig()
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + application.AgentsNamespace + ":" + l.name,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + application.AgentsNamespace, "system:authenticated"},
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	_, err = client.Resource(kit.ConfigMaps).Namespace(a.Namespace).Patch(ctx, a.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}
