package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krake-observer/krake-observer/internal/forecast"
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/mutate"
	"github.com/krake-observer/krake-observer/test/kit"
)

// vectorsVariable names a folder with more vectors.
const vectorsVariable = "KRAKE_VECTORS"

// The guard reports a request from the reverted object of a vector to its live one, if the two differ. It does not
// report the request back.
func TestTheGuardForetellsTheVectors(t *testing.T) {
	folders := []string{own}
	if more := os.Getenv(vectorsVariable); more != "" {
		folders = append(folders, more)
	} else {
		t.Logf("%s names no folder: only the vectors of this repository are tried", vectorsVariable)
	}
	for _, folder := range folders {
		vectors, err := read(filepath.Join(folder, "reverted.json"))
		kit.Must(t, err)
		told, tried := 0, 0
		for _, c := range vectors.Cases {
			app, object, live := plannedOf(t, c)
			if object == nil {
				continue
			}
			tried++
			reverted := object.Marked.Overlay(object.MarkedDesired(), runtime.DeepCopyJSON(live))
			setting := forecast.Setting{Now: time.Unix(0, 0)}
			undone := forecast.Undone(app, object, reverted, live, setting)
			if isSame := reflect.DeepEqual(reverted, live); isSame == (len(undone) > 0) {
				t.Errorf("%s/%s: the loop reverts it: %v; the guard tells %v", folder, c.ID, !isSame, undone)
			}
			if back := forecast.Undone(app, object, live, reverted, setting); len(back) > 0 {
				t.Errorf("%s/%s: a repair is told: %v", folder, c.ID, back)
			}
			if len(undone) > 0 {
				told++
			}
		}
		t.Logf("%s: %d of %d vectors are Applications, %d of them are told", folder, tried, len(vectors.Cases), told)
		if tried < len(vectors.Cases)/2 || told == 0 {
			t.Errorf("%s: %d vectors tried, %d told", folder, tried, told)
		}
	}
}

// plannedOf returns the Application of a vector, its object, and the live object with our marks. It returns no object
// for a vector that is no valid Application.
func plannedOf(t *testing.T, c testCase) (*application.Application, *plan.Object, map[string]any) {
	t.Helper()
	s := newState(c.Input)
	cm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "web", UID: "u", Annotations: map[string]string{application.FormatAnnotation: application.Format}},
		Data:       map[string]string{application.ManifestKey: documents(t, s.applied), application.ObserverSchemaKey: documents(t, s.mangled)},
	}
	if prepared := mutate.PrepareForCreate(t.Context().Err, cm); len(prepared.Refusals) > 0 {
		return nil, nil, nil
	}
	app, err := application.Read(cm)
	kit.Must(t, err)
	plans, err := (*plan.Cache)(nil).Of(app)
	kit.Must(t, err)
	id, err := manifest.Identify(s.live)
	kit.Must(t, err)
	id.Namespace = "demo"
	object, found, err := plans.Find(app, manifest.Ref{ID: id}, "demo", plan.NoTypes)
	kit.Must(t, err)
	if !found {
		return nil, nil, nil
	}
	live := plan.Placed(runtime.DeepCopyJSON(s.live), "demo")
	metadata, _ := live["metadata"].(map[string]any)
	metadata["namespace"] = "demo"
	return app, &object, object.Marks().On(live)
}

// documents returns YAML of several documents.
func documents(t *testing.T, items []any) string {
	t.Helper()
	var texts []string
	for _, item := range items {
		text, err := json.Marshal(item)
		kit.Must(t, err)
		texts = append(texts, string(text))
	}
	return strings.Join(texts, "\n---\n")
}
