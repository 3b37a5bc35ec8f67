package mutate_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/test/check"
)

// moved returns an Application that its former cluster still holds.
func moved(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	cm := stored(t)
	app, err := application.Read(cm)
	check.Must(t, err)
	for n := range 120 {
		app.Inventory = append(app.Inventory, manifest.ID{APIVersion: "v1", Kind: "Song", Namespace: "demo", Name: fmt.Sprintf("song-%d", n)})
	}
	check.Must(t, app.Record(cm))
	was := cm.DeepCopy()
	cm.Annotations["krake.dev/cluster"] = "edge"
	prepareUpdate(t, cm, was)
	return cm
}

// Any update can abandon a lost cluster by its name. The warnings list the objects that remain
// there. The Application continues on its present cluster.
func TestGiveUpAFormerCluster(t *testing.T) {
	was := moved(t)
	check.Equal(t, "holders", []string{"edge", "local"}, application.HoldersOf(was))
	cm := was.DeepCopy()
	cm.Annotations["krake.dev/force-delete"] = "local"
	want := cm.DeepCopy()
	delete(want.Data, "inventory.local")
	delete(want.Labels, "holder.krake.dev/local")
	want.Finalizers = []string{"example.org/mine"}
	prepared := mutate.PrepareForUpdate(t.Context().Err, cm, was, true)
	check.Equal(t, "refusals", []any{}, messages(prepared.Refusals))
	check.Equal(t, "ConfigMap", want, cm)
	check.Equal(t, "warnings", 10, len(prepared.Warnings))
	named := 0
	for _, warning := range prepared.Warnings {
		if !strings.HasPrefix(warning, "left unchanged on cluster local, which is given up: v1 Song demo/song-") || len(warning) > 250 {
			t.Errorf("warning: %s", warning)
		}
		named += strings.Count(warning, "v1 Song demo/song-")
	}
	if more := fmt.Sprintf(", and %d more", 120-named); !strings.HasSuffix(prepared.Warnings[9], more) {
		t.Errorf("%d are named, and the last warning is %s", named, prepared.Warnings[9])
	}
}

func TestWhatCannotBeGivenUp(t *testing.T) {
	for value, want := range map[string]string{
		"edge":       `metadata.annotations[krake.dev/force-delete]: Invalid value: "edge": the Application is on cluster edge: move it to another one, or delete it, to give up what it has there`,
		"local;edge": `metadata.annotations[krake.dev/force-delete]: Invalid value: "local;edge": it has to be "true", or the names of clusters, with commas between`,
	} {
		was := moved(t)
		cm := was.DeepCopy()
		cm.Annotations["krake.dev/force-delete"] = value
		check.Equal(t, "refusals", []any{want}, messages(mutate.PrepareForUpdate(t.Context().Err, cm, was, true).Refusals))
	}
}

// For a deleted Application, all clusters are abandoned at once.
func TestGiveUpADeletedApplication(t *testing.T) {
	was := moved(t)
	was.DeletionTimestamp = new(metav1.Now())
	cm := was.DeepCopy()
	cm.Annotations["krake.dev/force-delete"] = "true"
	prepared := mutate.PrepareForUpdate(t.Context().Err, cm, was, true)
	check.Equal(t, "holders", nil, application.HoldersOf(cm))
	check.Equal(t, "warnings", 10, len(prepared.Warnings)) // edge has no objects yet
}

// A value that one cluster has assigned is not published for another.
func TestMovingLeavesWhatWasLearned(t *testing.T) {
	was := stored(t)
	cm := was.DeepCopy()
	cm.Annotations["krake.dev/cluster"] = "edge"
	prepareUpdate(t, cm, was)
	check.Equal(t, "desired", desire(t, song(), nil).Resources, appliedBy(t, cm))
	cm.Annotations["krake.dev/cluster"] = "local"
	prepareUpdate(t, cm, was)
	check.Equal(t, "desired back home", desire(t, song(), key3()).Resources, appliedBy(t, cm))
}

func appliedBy(t *testing.T, cm *corev1.ConfigMap) []map[string]any {
	t.Helper()
	app, err := application.Read(cm)
	check.Must(t, err)
	return app.LastApplied.Objects()
}
