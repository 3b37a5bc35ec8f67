package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/faults/proxy"
	"github.com/krake-observer/krake-observer/test/kit"
)

// Some Applications are poison, each in another way: the agent tries them at a limited rate, and each reports what is
// wrong. All others are carried out and repaired meanwhile. What was carried out before an Application became
// unreadable stays unchanged.
func TestPoisonHarmsNoOtherApplication(t *testing.T) {
	t.Parallel()
	const others = 25
	l := newLane(t, "poison")
	names := []string{"learned", "inventory", "refused", "unserved", "foreign"}
	poisons := l.newApps(len(names))
	unreadable := poisons[:2]
	whole := creates("configmap one", "service 80", "deployment main:1")
	kit.Must(t, each(unreadable, func(a *app) error { return whole(t.Context(), a) }))
	kit.Must(t, l.await(t.Context(), standing(unreadable)))
	kit.Must(t, l.agent.kill()) // a new agent finds the documents
	kit.Must(t, l.forge(t.Context(), unreadable[0], fmt.Sprintf(`{"data": {%q: "{"}}`, application.LearnedKey)))
	kit.Must(t, l.forge(t.Context(), unreadable[1], fmt.Sprintf(`{"data": {%q: "{"}}`, application.InventoryKey(l.name))))
	kit.Must(t, l.agent.start())
	refused, unserved, foreign := poisons[2], poisons[3], poisons[4]
	kit.Must(t, creates(refusedService, "configmap one")(t.Context(), refused))
	kit.Must(t, creates("song one", "configmap one")(t.Context(), unserved))
	kit.Must(t, finds("configmap theirs")(t.Context(), foreign))
	kit.Must(t, whole(t.Context(), foreign))
	for i, a := range poisons {
		if err := l.await(t.Context(), a.complains); err != nil {
			t.Errorf("%s: %v", names[i], err)
		}
	}
	kit.Must(t, sleep(t.Context(), late)) // the last status is written

	begin, began := l.proxy.Mark(), time.Now()
	apps := l.newApps(others)
	kit.Must(t, each(apps, func(a *app) error { return whole(t.Context(), a) }))
	kit.Must(t, l.await(t.Context(), standing(apps)))
	for n := range 3 {
		kit.Must(t, each(apps, func(a *app) error { return drifts(fmt.Sprintf("service %d", 1000+n))(t.Context(), a) }))
		kit.Must(t, l.await(t.Context(), standing(apps)))
	}
	kit.Must(t, sleep(t.Context(), 20*time.Second-time.Since(began)))
	calls := l.proxy.Since(begin)
	for i, a := range poisons {
		const inAMinute = 30 // each try has some calls
		if made, most := callsAbout(a, calls), inAMinute*time.Since(began).Minutes(); float64(made) > most {
			t.Errorf("%s: %d calls while nothing can be done, want %.0f at most", names[i], made, most)
		}
		if err := a.complains(t.Context()); err != nil {
			t.Errorf("%s: %v", names[i], err)
		}
	}
	for _, a := range unreadable {
		kit.Must(t, a.hasObjects(t.Context()))
	}
}

// callsAbout counts the calls about an Application and its objects.
func callsAbout(a *app, calls []proxy.Call) (made int) {
	for _, call := range calls {
		if call.Number > 0 && a.owns(call.Subject()) {
			made++
		}
	}
	return made
}

// complains returns an error unless the Application reports that something is wrong. It reads the status alone: other
// documents may be unreadable.
func (a *app) complains(ctx context.Context) error {
	live, err := env.CoreV1().ConfigMaps(a.Namespace).Get(ctx, a.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	var status application.Status
	if err := json.Unmarshal([]byte(live.Data[application.StatusKey]), &status); err != nil {
		return fmt.Errorf("the status of %s: %w", a, err)
	}
	ready := meta.FindStatusCondition(status.Conditions, application.ReadyCondition)
	if ready == nil || ready.Status != metav1.ConditionFalse || live.Labels[application.StateLabel] == string(application.StateRunning) {
		return fmt.Errorf("the poisoned Application %s does not say what is wrong: %v", a, status.Conditions)
	}
	return nil
}

// forge patches an Application as its agent, the only user who may write its documents.
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
