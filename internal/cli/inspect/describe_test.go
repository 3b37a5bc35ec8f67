package inspect

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/kit/clitest"
)

// leavingApp returns a deleted Application that is asked to shut down. Cluster west still has
// objects of it.
func leavingApp(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	cm := clitest.Created("leaving", application.ClusterAnnotation, "east", application.HooksAnnotation, "complete,shutdown",
		application.ShutdownGraceTimeAnnotation, "90s", application.ShutdownRetryCountAnnotation, "2", application.ShutdownStrategyAnnotation, "delete",
		application.ServiceAccountAnnotation, "shop-deployer", application.AdoptAnnotation, "true", application.DeletionPolicyAnnotation, "orphan",
		application.HoldAnnotation, "deny", application.ModeAnnotation, "observe")
	delete(cm.Data, application.ManifestKey)
	cm.Data[application.ToscaKey] = "https://example.org/web/service.yaml"
	cm.Data[application.ObserverSchemaKey] = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"
	cm.DeletionTimestamp = new(clitest.Ago(time.Minute))
	cm.Finalizers = []string{application.Finalizer("west")}
	return clitest.Recorded(t, clitest.Admitted(t, cm), func(app *application.Application) {
		app.Status.State = application.StateWaiting
		app.Status.Services, app.Status.ContainerHealth = nil, nil
		clitest.SetConditions(app, clitest.Condition(application.ReadyCondition, metav1.ConditionFalse, "ShuttingDown",
			"the Application is asked to shut down (attempt 1), and has until 2026-01-02T12:01:00Z to confirm that"))
		app.Status.Objects = app.Status.Objects[:1]
		app.Status.Objects[0].Health = "Failed"
		app.Adopted = app.Inventory[:1]
		app.Inventory = append(app.Inventory, manifest.ID{APIVersion: "v1", Kind: "ConfigMap", Namespace: "other", Name: "far"})
		app.Hooks = application.HookRecord{Completed: true, Shutdown: &application.ShutdownRecord{
			State: application.StateWaiting, Attempt: 1, Deadline: metav1.NewTime(clitest.Noon.Add(time.Minute)), Message: "connection refused",
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
		h.Put(leavingApp(t))
		h.Golden(t, c.file, newDescribeCommand, c.name)
	}
}

// Several Applications are separated by empty lines, and missing ones are reported at the end.
func TestDescribeSeveral(t *testing.T) {
	out, _, err := clitest.Run(t, manyApps(t), newDescribeCommand, "web", "nope", "held")
	if err == nil || strings.Count(out, "Name:") != 2 || !strings.Contains(out, "\n\n\nName:") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, errOut, err := clitest.Run(t, clitest.NewHub(t), newDescribeCommand); err != nil || errOut != "No Applications found in demo namespace.\n" {
		t.Errorf("%v, %q", err, errOut)
	}
	if _, _, err := clitest.Run(t, clitest.NewHub(t), newDescribeCommand, "nope"); err == nil {
		t.Error("there is none, and no error")
	}
}

// driftedApp returns an Application with one drift of each kind.
func driftedApp(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	return clitest.Recorded(t, clitest.Admitted(t, clitest.Created("drifted")), func(app *application.Application) {
		long := clitest.Rescaled(time.Hour, 1)
		long.After, long.Manager, long.Subresource = &metav1.Duration{Duration: 200 * time.Second}, "kube-controller-manager", ""
		long.Fields = append(long.Fields, application.DriftedField{Path: "spec.paused", Have: true}, application.DriftedField{Path: "spec.strategy.type", Want: "Recreate"})
		secret := clitest.Rescaled(2*time.Hour, 1)
		secret.Object, secret.Fields = clitest.ID("Secret", "db"), []application.DriftedField{{Path: "data.password"}}
		left := clitest.Rescaled(3*time.Hour, 1)
		left.Repaired, left.After, left.Manager, left.Subresource, left.Operation, left.Changed = "", nil, "", "", "", nil
		left.Fields = []application.DriftedField{{Path: `metadata.annotations["example.org/note"]`}, {Path: "spec.clusterIP", Want: "", Have: "10.0.0.1"}}
		left.Object.Namespace = "other"
		hostile := clitest.Rescaled(4*time.Hour, 0)
		hostile.Manager, hostile.Fields = "\x1b[2Jmanager\twith\ncontrol\u202e", []application.DriftedField{{Path: "spec.a", Want: "\x1b]0;title\a", Have: "b"}}
		app.Status.Drifts = append([]application.Drift{clitest.Rescaled(5*time.Minute, 3)}, long, secret, left, hostile, application.Drift{
			Object: clitest.ID("Service", "web"), Seen: clitest.Ago(5 * time.Hour), Repaired: "Recreated", After: &metav1.Duration{Duration: 40 * time.Millisecond}, Count: 1,
		})
	})
}

func TestHistory(t *testing.T) {
	for file, arguments := range map[string][]string{
		"history.txt": {"drifted"}, "history-wide.txt": {"drifted", "-o", "wide"}, "history.yaml": {"drifted", "-o", "yaml"},
	} {
		clitest.NewHub(t, driftedApp(t)).Golden(t, file, newHistoryCommand, arguments...)
	}
}

// The output distinguishes an empty history from an Application that no agent has observed.
func TestHistoryOfNothing(t *testing.T) {
	h := clitest.NewHub(t, clitest.Created("raw"), clitest.Admitted(t, clitest.Created("fresh")), clitest.Recorded(t, clitest.Admitted(t, clitest.Created("calm")), nil))
	for name, says := range map[string]string{
		"raw": "No agent has looked at Application demo/raw yet.\n", "fresh": "No agent has looked at Application demo/fresh yet.\n",
		"calm": "Nothing of Application demo/calm has drifted, as far as its status remembers.\n",
	} {
		out, errOut, err := clitest.Run(t, h, newHistoryCommand, name)
		if out != "" || errOut != says || err != nil {
			t.Errorf("%s: %q, %q, %v", name, out, errOut, err)
		}
		out, _, err = clitest.Run(t, h, newHistoryCommand, name, "-o", "json")
		var list documentList[application.Drift]
		if failure := json.Unmarshal([]byte(out), &list); failure != nil || err != nil || list.Items == nil || len(list.Items) != 0 || list.Application != "demo/"+name {
			t.Errorf("%s: %q, %v, %v", name, out, err, failure)
		}
	}
}
