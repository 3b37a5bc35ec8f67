package e2e

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/krake-observer/krake-observer/test/kit"
)

// Status that does not fit into the ConfigMap is omitted and reported.
// The agent still does its work, and every write of it succeeds. An annotation that is observed and not in the
// manifest is learned at any length.
func TestWhatDoesNotFitIsReportedAndCarriedOut(t *testing.T) {
	kit.Long(t, "many writers")
	const (
		objects = 4
		each    = 15 << 10 // in three documents
		notes   = 850 << 10
		service = "{apiVersion: v1, kind: Service, metadata: {name: nginx}, spec: {selector: {app: nginx}, ports: [{port: 80, targetPort: 80}]}}"
	)
	manifest, schema := service, ""
	for n := range objects {
		manifest += fmt.Sprintf("\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: grows-%d}, data: {a: b}}", n)
		schema += fmt.Sprintf("---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: grows-%d, annotations: {size: null}}, data: {a: null}}\n", n)
	}
	namespace := newNamespace(t)
	createApplication(t, namespace, "nginx", manifest, schema)
	eventuallyReconciled(t, namespace, "nginx")
	fill(t, namespace, "nginx", notes, "data", "notes")
	before := auditMark(t)
	for n := range objects {
		if condition := hub.App(namespace, "nginx").Condition(t, "StatusTruncated"); condition.Type != "" {
			t.Errorf("%d objects have grown, and it is too large already: %v", n, condition)
		}
		fill(t, namespace, fmt.Sprintf("grows-%d", n), each, "metadata", "annotations", "size")
		kit.Eventually(t, func() string {
			if learned, _ := document(t, namespace, "nginx", "status.learned").([]any); len(learned) != n+1 {
				return fmt.Sprintf("%d objects are learned of, want %d", len(learned), n+1)
			}
			return ""
		})
	}
	checkNames(t, eventuallyCondition(t, namespace, "nginx", "StatusTruncated", "True", "SizeLimitExceeded"), "no room")
	settle(t, namespace) // the agent still works

	hub.Change(t, kit.ConfigMaps, namespace, "nginx", `{"data": {"notes": null}}`)
	hub.Change(t, kit.Services, namespace, "nginx", `{"spec": {"selector": {"app": "other"}}}`)
	hub.EventuallyField(t, "nginx", kit.Services, namespace, "nginx", "spec", "selector", "app")
	kit.Eventually(t, func() string {
		if condition := hub.App(namespace, "nginx").Condition(t, "StatusTruncated"); condition.Type != "" {
			return fmt.Sprintf("there is room again, and still %v", condition)
		}
		return ""
	})
	for _, r := range before.Requests(t, ofAgent, kit.Request.IsWrite, kit.In(namespace)) {
		if code := r.Status.Code; code >= http.StatusMultipleChoices && code != http.StatusConflict {
			t.Errorf("want every write to pass, got %.300s", r)
		}
	}
}

// fill writes a text that compresses badly into a field of a ConfigMap.
func fill(t *testing.T, namespace, name string, size int, path ...string) {
	t.Helper()
	text := make([]byte, size/2)
	kit.Must(t, kit.ErrorOf(rand.Read(text)))
	var patch any = hex.EncodeToString(text)
	for _, step := range slices.Backward(path) {
		patch = map[string]any{step: patch}
	}
	hub.Change(t, kit.ConfigMaps, namespace, name, string(kit.JSON(t, patch)))
}
