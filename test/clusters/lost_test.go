package clusters

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
)

// soon is how soon an Application says that its cluster cannot be reached.
const soon = time.Minute

// A cluster does not answer any more. Its Applications say so; one that is deleted
// waits, until a user gives up on what it has there, who is told what that is.
func TestA36(t *testing.T) {
	t.Parallel()
	const namespace = "a36"
	newNamespace(t, namespace, planes()...)
	lost := enrol(t, "lost", env.west, []string{namespace}, quickLease()...)
	rescue := enrol(t, "rescue", env.east, []string{namespace}, quickLease()...)
	wire := newWire(t, env.west)
	lost.through(t, &lost.Target, wire)
	lost.mustStart(t)
	rescue.mustStart(t)
	deleted := newApp(t, lost.Name, namespace, "deleted", webManifest, "")
	moved := newApp(t, lost.Name, namespace, "moved", webManifest, "")
	deleted.mustSettle(t, lost.Name)
	moved.mustSettle(t, lost.Name)

	wire.Cut()
	gone := auditMark(t, env.west)
	t.Run("deleted", func(t *testing.T) {
		deleted.delete(t)
		deleted.awaitUnreachable(t)
		if !lost.IsReady(t.Context()) {
			t.Error("the agent is not ready, only because its target does not answer")
		}
		said := kubectl(t, env.hub.Cluster, "--namespace", namespace, "annotate", "configmap", deleted.Name, application.ForceDeleteAnnotation+"=true")
		checkLeft(t, "what kubectl says", said, "deleted")
		deleted.mustGo(t)
		deleted.awaitEvent(t, func(note string) bool { return mentionsAll(note, leftBehind("deleted")) })
	})
	t.Run("moved", func(t *testing.T) {
		moved.annotate(t, application.ClusterAnnotation, rescue.Name)
		moved.awaitReady(t, rescue.Name)
		if holders := application.HoldersOf(moved.stored(t)); !slices.Contains(holders, lost.Name) {
			t.Errorf("the lost cluster was given up although nobody said so: %v", holders)
		}
		said := kubectl(t, env.hub.Cluster, "--namespace", namespace, "annotate", "configmap", moved.Name, application.ForceDeleteAnnotation+"="+lost.Name)
		checkLeft(t, "what kubectl says", said, "moved")
		moved.mustSettle(t, rescue.Name)
	})
	if writes := gone.requests(t, by(lost.Name), request.isWork); len(writes) > 0 {
		t.Errorf("the cluster was not lost: %s", list(writes))
	}
	lost.mustLive(t)

	// It was not lost after all: what was given up is nobody's, and stays.
	if err := wire.Mend(); err != nil {
		t.Fatal(err)
	}
	after := newApp(t, lost.Name, namespace, "after", webManifest, "")
	after.mustSettle(t, lost.Name)
	for _, name := range []string{"deleted", "moved"} {
		_, err := env.west.AppsV1().Deployments(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			t.Errorf("Deployment %s, which was given up, was deleted", name)
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// leftBehind are the objects of an Application of webManifest, as people name them.
func leftBehind(name string) []string {
	return []string{"ConfigMap " + name + "-settings", "Service " + name, "Deployment " + name}
}

func checkLeft(t *testing.T, where, text, name string) {
	t.Helper()
	if !strings.Contains(text, "Warning: ") || !mentionsAll(text, leftBehind(name)) {
		t.Errorf("%s does not warn of %v: %s", where, leftBehind(name), text)
	}
}

// mentionsAll tells if a text has the kind and the name of each object.
func mentionsAll(text string, objects []string) bool {
	return !slices.ContainsFunc(objects, func(object string) bool {
		kind, name, _ := strings.Cut(object, " ")
		return !strings.Contains(text, kind) || !strings.Contains(text, name)
	})
}

// awaitUnreachable waits until the Application says that its cluster does not answer.
func (a app) awaitUnreachable(t *testing.T) {
	t.Helper()
	began := time.Now()
	eventually(t, soon, func() string {
		status := a.status(t)
		reconciled := meta.FindStatusCondition(status.Conditions, application.ReconciledCondition)
		if reconciled != nil && reconciled.Reason == "TargetUnreachable" && reconciled.Status == metav1.ConditionUnknown {
			return ""
		}
		return fmt.Sprintf("%s says: %v", a, status.Conditions)
	})
	t.Logf("%s says so after %s", a, time.Since(began).Round(time.Millisecond))
}

// awaitReady waits until the agent of that cluster says that all is well there.
func (a app) awaitReady(t *testing.T, cluster string) {
	t.Helper()
	eventually(t, timeout, func() string {
		status := a.status(t)
		if status.ClusterName() == cluster && meta.IsStatusConditionTrue(status.Conditions, application.ReadyCondition) {
			return ""
		}
		return fmt.Sprintf("%s speaks of %q: %v", a, status.ClusterName(), status.Conditions)
	})
}

// awaitEvent waits for an Event about the Application whose note is as wanted.
func (a app) awaitEvent(t *testing.T, wanted func(note string) bool) {
	t.Helper()
	eventually(t, timeout, func() string {
		events, err := env.hub.EventsV1().Events(a.Namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var notes []string
		for _, event := range events.Items {
			if event.Regarding.Name == a.Name && event.Regarding.Kind == "ConfigMap" {
				if wanted(event.Note) {
					return ""
				}
				notes = append(notes, event.Reason+": "+event.Note)
			}
		}
		return fmt.Sprintf("no Event about %s says what is left: %q", a, notes)
	})
}
