package cli

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// leavingApp returns a deleted Application that is asked to shut down. Cluster west still has
// objects of it.
func leavingApp(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	cm := created("leaving", application.ClusterAnnotation, "east", application.HooksAnnotation, "complete,shutdown",
		application.ShutdownGraceTimeAnnotation, "90s", application.ShutdownRetryCountAnnotation, "2", application.ShutdownStrategyAnnotation, "delete",
		application.ServiceAccountAnnotation, "shop-deployer", application.AdoptAnnotation, "true", application.DeletionPolicyAnnotation, "orphan",
		application.HoldAnnotation, "deny", application.ModeAnnotation, "observe")
	delete(cm.Data, application.ManifestKey)
	cm.Data[application.ToscaKey] = "https://example.org/web/service.yaml"
	cm.Data[application.ObserverSchemaKey] = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"
	cm.DeletionTimestamp = new(ago(time.Minute))
	cm.Finalizers = []string{application.Finalizer("west")}
	return recorded(t, admitted(t, cm), func(app *application.Application) {
		app.Status.State = application.StateWaiting
		app.Status.Services, app.Status.ContainerHealth = nil, nil
		set(app, condition(application.ReadyCondition, metav1.ConditionFalse, "ShuttingDown",
			"the Application is asked to shut down (attempt 1), and has until 2026-01-02T12:01:00Z to confirm that"))
		app.Status.Objects = app.Status.Objects[:1]
		app.Status.Objects[0].Health = "Failed"
		app.Adopted = app.Inventory[:1]
		app.Inventory = append(app.Inventory, manifest.ID{APIVersion: "v1", Kind: "ConfigMap", Namespace: "other", Name: "far"})
		app.Hooks = application.HookRecord{Completed: true, Shutdown: &application.ShutdownRecord{
			State: application.StateWaiting, Attempt: 1, Deadline: metav1.NewTime(noon.Add(time.Minute)), Message: "connection refused",
		}}
	})
}

func TestDescribe(t *testing.T) {
	for _, c := range []struct{ file, name string }{
		{"describe.txt", "web"},
		{"describe-held.txt", "held"},
		{"describe-raw.txt", "raw"},
		{"describe-future.txt", "future"},
		{"describe-leaving.txt", "leaving"},
	} {
		h := manyApps(t)
		h.put(leavingApp(t))
		h.golden(t, c.file, newDescribeCommand, c.name)
	}
}

// Several Applications are separated by empty lines, and missing ones are reported at the end.
func TestDescribeSeveral(t *testing.T) {
	out, _, err := run(t, manyApps(t), newDescribeCommand, "web", "nope", "held")
	if err == nil || strings.Count(out, "Name:") != 2 || !strings.Contains(out, "\n\n\nName:") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, errOut, err := run(t, newHub(t), newDescribeCommand); err != nil || errOut != "No Applications found in demo namespace.\n" {
		t.Errorf("%v, %q", err, errOut)
	}
	if _, _, err := run(t, newHub(t), newDescribeCommand, "nope"); err == nil {
		t.Error("there is none, and no error")
	}
}
