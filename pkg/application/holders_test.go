package application_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check"
)

// moved returns an Application that was moved from the local cluster to edge, whose agent has
// accepted it.
func moved(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	cm := configMap()
	cm.Labels = map[string]string{"holder.krake.dev/local": "true"}
	record(t, running(), cm)
	cm.Annotations["krake.dev/cluster"] = "edge"
	cm.Labels["holder.krake.dev/edge"] = "true"
	app, err := application.ReadFor(cm, "edge")
	check.Must(t, err)
	app.Finalized, app.Inventory = true, []manifest.ID{{APIVersion: "v1", Kind: "Song", Namespace: "demo", Name: "there"}}
	app.Status = application.Status{
		ObservedSpec: app.Spec.Digest(), State: application.StateRunning,
		Conditions: []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Ready"}},
	}.On("edge")
	record(t, app, cm)
	return cm
}

// The agent of a former cluster reads its own inventory, and the status of the other agent.
func TestReadForAFormerCluster(t *testing.T) {
	app, err := application.ReadFor(moved(t), "local")
	check.Must(t, err)
	if app.IsCurrent() || !app.Finalized || app.Cluster != "edge" {
		t.Errorf("current %v, finalized %v, for cluster %s", app.IsCurrent(), app.Finalized, app.Cluster)
	}
	check.Equal(t, "inventory", running().Inventory, app.Inventory)
	check.Equal(t, "other holders", []string{"edge"}, app.OtherHolders)
	check.Equal(t, "cluster of the status", "edge", app.Status.ClusterName())
}

// The agent writes its own fields, and removes them when its inventory is empty.
func TestRecordOfAFormerCluster(t *testing.T) {
	cm := moved(t)
	app, err := application.ReadFor(cm, "local")
	check.Must(t, err)
	app.Inventory, app.Finalized = nil, false
	app.Status, app.Learned, app.LastApplied = application.Status{State: application.StateFailed}, nil, application.Publishing([]object{})
	want := cm.DeepCopy()
	delete(want.Data, "inventory.local")
	delete(want.Labels, "holder.krake.dev/local")
	want.Finalizers = []string{"edge.krake.dev/resources"}
	record(t, app, cm)
	check.Equal(t, "recorded", want, cm, cmp.Transformer("empty", func(m map[string][]byte) int { return len(m) }))
}

func TestIsReady(t *testing.T) {
	cases := []struct {
		name   string
		change func(cm *corev1.ConfigMap)
		want   bool
	}{
		{"everything is there", func(*corev1.ConfigMap) {}, true},
		{"of another spec", func(cm *corev1.ConfigMap) { cm.Data["spec.manifest"] = "kind: Album" }, false},
		{"on a cluster where it is no more", func(cm *corev1.ConfigMap) { cm.Annotations["krake.dev/cluster"] = "third" }, false},
		{"in the words of this cluster, which has it no more", func(cm *corev1.ConfigMap) {
			cm.Data["status"] = `{"conditions": [{"type": "Ready", "status": "True"}], "observedSpec": "` + application.SpecOf(cm).Digest() + `"}`
		}, false},
		{"but is not well", func(cm *corev1.ConfigMap) {
			cm.Data["status"] = `{"cluster": "edge", "conditions": [{"type": "Ready", "status": "Unknown"}], "observedSpec": "` + application.SpecOf(cm).Digest() + `"}`
		}, false},
		{"nobody can read what it says", func(cm *corev1.ConfigMap) { cm.Data["status"] = "{" }, false},
		{"it says nothing", func(cm *corev1.ConfigMap) { delete(cm.Data, "status") }, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			cm := moved(t)
			c.change(cm)
			app, err := application.ReadFor(cm, "local")
			check.Must(t, err)
			check.Equal(t, "ready", c.want, app.IsReady())
		})
	}
}

// The writes of webhook and agents that wake an agent.
func TestWhatWakesHolders(t *testing.T) {
	cases := []struct {
		name         string
		change       func(cm *corev1.ConfigMap)
		former, here bool
	}{
		{"nothing", func(*corev1.ConfigMap) {}, false, false},
		{"status of the other one, which changes nothing for a former one", func(cm *corev1.ConfigMap) {
			cm.Data["inventory.edge"], cm.Labels["krake.dev/state"] = "[]", "FAILED"
		}, false, false},
		{"that everything is not there any more", func(cm *corev1.ConfigMap) { delete(cm.Data, "status") }, true, false},
		{"that a former one has gone", func(cm *corev1.ConfigMap) {
			delete(cm.Labels, "holder.krake.dev/local")
			cm.Finalizers = []string{"edge.krake.dev/resources"}
		}, false, true},
		{"that there is a third one", func(cm *corev1.ConfigMap) { cm.Labels["holder.krake.dev/third"] = "true" }, true, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			before, after := moved(t), moved(t)
			c.change(after)
			for cluster, wakes := range map[string]bool{"local": c.former, "edge": c.here} {
				check.Equal(t, "it wakes the agent of "+cluster, wakes, !application.SameFor(before, after, cluster))
			}
		})
	}
}

func TestGivenUp(t *testing.T) {
	cases := []struct {
		value    string
		deleting bool
		want     []string
	}{
		{"", true, nil},
		{"true", true, []string{"edge", "local"}},
		{"true", false, nil}, // from before the deletion
		{"local", false, []string{"local"}},
		{"local, third,", false, []string{"local", "third"}},
		{"local,edge", false, []string{"local"}}, // edge is the present cluster
		{"local,edge", true, []string{"local", "edge"}},
	}
	for _, c := range cases {
		cm := moved(t)
		cm.Annotations["krake.dev/force-delete"] = c.value
		check.Equal(t, fmt.Sprintf("%q, deleting %v", c.value, c.deleting), c.want, application.GivenUp(cm, c.deleting))
	}
}

// An abandoned cluster leaves no field behind, and the other clusters' fields stay unchanged.
func TestGiveUp(t *testing.T) {
	cm := moved(t)
	held := application.GiveUp(cm, "local")
	check.Equal(t, "held", running().Inventory, held)
	check.Equal(t, "holders", []string{"edge"}, application.HoldersOf(cm))
	if _, ok := cm.Data["inventory.local"]; ok || cm.Data["inventory.edge"] == "" {
		t.Errorf("inventories: %v", cm.Data)
	}
}
