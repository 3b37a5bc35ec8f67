package status_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/internal/pacing"
	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check"
)

// rolling is an Application of one Deployment, during a rollout.
func rolling() *application.Application {
	web := manifest.ID{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "demo", Name: "web"}
	return &application.Application{
		Inventory: []manifest.ID{web}, Learned: []map[string]any{{"spec": map[string]any{"replicas": int64(3)}}},
		LastObserved: application.Publishing([]map[string]any{{"kind": "Deployment"}}),
		Status: application.Status{
			ObservedSpec: "digest", State: application.StateDegraded,
			Conditions: []metav1.Condition{
				{Type: application.ReadyCondition, Status: metav1.ConditionFalse, Reason: "InProgress", Message: "Updated: 1/3"},
			},
			Objects:         []application.ObjectStatus{{ID: web, Health: "InProgress"}},
			ContainerHealth: &application.ContainerHealth{DesiredPods: 3, RunningPods: 3},
		},
	}
}

// What people, or the next pass, need at once is urgent: a state, a reason, an object, a
// learned value. A text or a count below the same state and reasons is not.
func TestUrgency(t *testing.T) {
	other := manifest.ID{APIVersion: "v1", Kind: "Service", Namespace: "demo", Name: "web"}
	for _, c := range []struct {
		name   string
		change func(app *application.Application)
		want   pacing.Urgency
	}{
		{"nothing", func(*application.Application) {}, pacing.Nothing},
		{"the time of a condition", func(app *application.Application) { app.Status.Conditions[0].LastTransitionTime = metav1.Now() }, pacing.Texts},
		{"a message", func(app *application.Application) { app.Status.Conditions[0].Message = "Updated: 2/3" }, pacing.Texts},
		{"a count of Pods", func(app *application.Application) { app.Status.ContainerHealth.RunningPods = 4 }, pacing.Texts},
		{"the health of an object", func(app *application.Application) { app.Status.Objects[0].Health = "Current" }, pacing.Texts},
		{"the message about an object", func(app *application.Application) { app.Status.Objects[0].Message = "no" }, pacing.Texts},
		{"a drift in the history", func(app *application.Application) { app.Status.Drifts = []application.Drift{{Count: 1}} }, pacing.Records},
		{"an observed value", func(app *application.Application) {
			app.LastObserved = application.Publishing([]map[string]any{{"kind": "Deployment", "spec": "x"}})
		}, pacing.Records},
		{"the desired state", func(app *application.Application) { app.LastApplied = application.Publishing([]map[string]any{}) }, pacing.Records},
		{"the state", func(app *application.Application) { app.Status.State = application.StateRunning }, pacing.Urgent},
		{"the reason of a condition", func(app *application.Application) { app.Status.Conditions[0].Reason = "Unhealthy" }, pacing.Urgent},
		{"the status of a condition", func(app *application.Application) { app.Status.Conditions[0].Status = metav1.ConditionTrue }, pacing.Urgent},
		{"one more condition", func(app *application.Application) {
			app.Status.Conditions = append(app.Status.Conditions, metav1.Condition{Type: application.MigratingCondition})
		}, pacing.Urgent},
		{"the spec", func(app *application.Application) { app.Status.ObservedSpec = "another" }, pacing.Urgent},
		{"the cluster", func(app *application.Application) { app.Status.Cluster = "edge" }, pacing.Urgent},
		{"what is awaited", func(app *application.Application) { app.Status.Awaiting = "edge" }, pacing.Urgent},
		{"the target", func(app *application.Application) { app.Status.Target = types.UID("t") }, pacing.Urgent},
		{"an object that appears", func(app *application.Application) {
			app.Status.Objects = append(app.Status.Objects, application.ObjectStatus{ID: other})
		}, pacing.Urgent},
		{"an object that leaves", func(app *application.Application) { app.Status.Objects = nil }, pacing.Urgent},
		{"the reason of an object", func(app *application.Application) { app.Status.Objects[0].Reason = status.Held }, pacing.Urgent},
		{"the fields of an object", func(app *application.Application) { app.Status.Objects[0].Fields = []string{"spec.replicas"} }, pacing.Urgent},
		{"a hold", func(app *application.Application) { app.Status.Objects[0].Hold = &application.Hold{Asked: "1h"} }, pacing.Urgent},
		{"the end of an object", func(app *application.Application) {
			app.Status.Objects[0].Ended = &application.Ended{State: "COMPLETED"}
		}, pacing.Urgent},
		{"an address", func(app *application.Application) { app.Status.Services = map[string]string{"web": "10.0.0.1:80"} }, pacing.Urgent},
		{"the inventory", func(app *application.Application) { app.Inventory = append(app.Inventory, other) }, pacing.Urgent},
		{"what was adopted", func(app *application.Application) { app.Adopted = slices.Clone(app.Inventory) }, pacing.Urgent},
		{"a learned value", func(app *application.Application) { app.Learned = nil }, pacing.Urgent},
	} {
		t.Run(c.name, func(t *testing.T) {
			next := rolling()
			c.change(next)
			check.Equal(t, "urgency", c.want, status.UrgencyOf(rolling(), next))
		})
	}
}

// Of an Application that does not fit into its ConfigMap, objects and addresses are not
// published: that they differ is no news.
func TestUrgencyWithoutRoom(t *testing.T) {
	published, next := rolling(), rolling()
	for _, app := range []*application.Application{published, next} {
		app.Status.Conditions = append(app.Status.Conditions, metav1.Condition{Type: application.StatusTruncatedCondition, Status: metav1.ConditionTrue})
	}
	published.Status.Objects, published.Status.ContainerHealth = nil, nil
	check.Equal(t, "urgency", pacing.Texts, status.UrgencyOf(published, next))
}
