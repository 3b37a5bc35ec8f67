package main

import (
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/test/bench/workload"
)

// guarded is an object of the set with right values except for these leaves.
func guarded(name string, leaves map[string]string) *corev1.ConfigMap {
	data := map[string]string{workload.Free: "free"}
	for i := range workload.ConfigMaps().Leaves {
		data[workload.Leaf(i)] = workload.Kept
	}
	maps.Copy(data, leaves)
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1"}, Data: data}
}

func drifting(name string, one *drift) *drifter {
	one.done = make(chan struct{})
	return &drifter{set: &set{kind: workload.ConfigMaps()}, open: map[string]*drift{name: one}}
}

// A repair may change the drifted leaf, and what every write changes.
func TestStrayed(t *testing.T) {
	for _, c := range []struct {
		why    string
		repair func(*corev1.ConfigMap)
		want   int
	}{
		{"the leaf alone", func(cm *corev1.ConfigMap) {
			cm.ResourceVersion = "2"
			cm.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "x"}}
		}, 0},
		{"a leaf that nobody guards", func(cm *corev1.ConfigMap) { delete(cm.Data, workload.Free) }, 1},
		{"another leaf", func(cm *corev1.ConfigMap) { cm.Data[workload.Leaf(4)] = "else" }, 1},
		{"an annotation", func(cm *corev1.ConfigMap) { cm.Annotations = map[string]string{"last": "applied"} }, 1},
	} {
		t.Run(c.why, func(t *testing.T) {
			one := &drift{leaf: workload.Leaf(3), value: "drift-0"}
			d := drifting("a", one)
			repaired := guarded("a", nil)
			c.repair(repaired)
			d.take("a", guarded("a", map[string]string{one.leaf: one.value}), time.Now())
			d.take("a", repaired, time.Now())
			d.keep(one)
			if got, err := d.strayed(); err != nil || got != c.want {
				t.Errorf("%d, %v, want %d", got, err, c.want)
			}
		})
	}
}
