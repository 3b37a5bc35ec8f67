package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/internal/health"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// calm is how long nothing is written when no work remains: longer than a write of an
// Application's state may be delayed. Changes of health alone wait longer; see eventuallyHealthy.
const calm = 2 * time.Second

// ofKind selects the requests about objects of a resource, and its subresources.
func ofKind(resource string) kit.Filter {
	return func(r kit.Request) bool { return r.Object.Resource == resource }
}

// awaitCalm waits until the agent has nothing to write in a namespace.
func awaitCalm(t *testing.T, namespace string) {
	t.Helper()
	auditMark(t).Calm(t, calm, ofAgent, kit.Request.IsWrite, kit.In(namespace))
}

// checkCalm fails if anything was written in a namespace since the mark, or still is.
func checkCalm(t *testing.T, m kit.Mark, namespace, what string) {
	t.Helper()
	awaitCalm(t, namespace)
	for _, r := range m.Requests(t, ofAgent, kit.Request.IsWrite, kit.In(namespace)) {
		t.Errorf("%s: want no write, got %s", what, r)
	}
}

// eventuallyCondition waits for a condition of an Application and returns its message.
func eventuallyCondition(t *testing.T, namespace, name, kind string, status metav1.ConditionStatus, reason string) (message string) {
	t.Helper()
	kit.Eventually(t, func() string {
		condition := hub.App(namespace, name).Condition(t, kind)
		if message = condition.Message; condition.Status != status || condition.Reason != reason {
			return fmt.Sprintf("condition %s of %s is %v, want %s %s", kind, name, condition, status, reason)
		}
		return ""
	})
	return message
}

// eventuallyReconciled waits until all objects match the Application, healthy or not.
func eventuallyReconciled(t *testing.T, namespace, name string) {
	t.Helper()
	kit.Eventually(t, func() string {
		if condition := hub.App(namespace, name).Condition(t, application.ReconciledCondition); condition.Status != metav1.ConditionTrue {
			return fmt.Sprintf("%s is not reconciled: %v", name, condition)
		}
		return ""
	})
}

// eventuallyHealthy waits until the status says that each object is healthy.
func eventuallyHealthy(t *testing.T, namespace, name string) {
	t.Helper()
	kit.Eventually(t, func() string {
		for _, object := range hub.App(namespace, name).Read(t).Status.Objects {
			if object.Health != string(health.StatusCurrent) {
				return fmt.Sprintf("%s says that %s %s is %s", name, object.Kind, object.Name, object.Health)
			}
		}
		return ""
	})
}

// checkNames fails if a text lacks one of the names.
func checkNames(t *testing.T, text string, names ...string) {
	t.Helper()
	for _, name := range names {
		if !strings.Contains(text, name) {
			t.Errorf("%q does not name %s", text, name)
		}
	}
}

// respec replaces the manifest of an Application.
func respec(t *testing.T, namespace, name, manifest string) {
	t.Helper()
	kit.Must(t, tryRespec(t, namespace, name, manifest))
}

func tryRespec(t *testing.T, namespace, name, manifest string) error {
	return hub.TryChange(t.Context(), kit.ConfigMaps, namespace, name,
		string(kit.JSON(t, map[string]any{"data": map[string]any{"spec.manifest": manifest}})))
}

// withoutAgent calls do while the agent is stopped.
func withoutAgent(t *testing.T, do func()) {
	t.Helper()
	kit.Must(t, both.StopAgent())
	defer func() { kit.Must(t, both.StartAgent(context.WithoutCancel(t.Context()))) }()
	do()
}
