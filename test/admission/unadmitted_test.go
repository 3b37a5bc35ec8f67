package admission

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// policy begins all refusals of the policy.
const policy = "ValidatingAdmissionPolicy 'krake-configmaps'"

// An administrator deletes the webhook's configuration. An
// Application that is created then has no authority: no agent acts on it. When the configuration is back, any edit admits it.
func TestUnadmittedApplicationIsNotCarriedOut(t *testing.T) {
	namespace := newNamespace(t)
	mustRun(t, namespace, "web")
	withoutConfiguration(t)

	t.Run("an Application is stored as it was sent, and not acted upon", func(t *testing.T) {
		kit.Must(t, create(t, low, newApplication(namespace, "new")))
		notActedUpon(t, namespace, "new")
	})
	t.Run("what was admitted before is carried out", func(t *testing.T) { mustHeal(t, namespace, "web") })

	restore(t)
	t.Run("an edit admits the Application", func(t *testing.T) {
		notActedUpon(t, namespace, "new")
		kit.Must(t, patch(t, editor, namespace, "new", `{"metadata": {"annotations": {"example.com/note": "x"}}}`))
		eventuallyState(t, application.StateRunning, namespace, "new")
		if service(t, namespace, "new") == nil {
			t.Error("there is no Service")
		}
	})
}

// notActedUpon fails if any client except the user has changed an Application. Another
// Application of the same namespace, web, is repaired later: this shows that the agent
// had its chance.
func notActedUpon(t *testing.T, namespace, name string) {
	t.Helper()
	mustHeal(t, namespace, "web")
	cm := get(t, namespace, name)
	want := newApplication(namespace, name)
	if diff := cmp.Diff(want.Data, cm.Data); diff != "" {
		t.Errorf("the data is not the user's (-want +got):\n%s", diff)
	}
	if len(cm.Labels)+len(cm.Finalizers)+len(cm.BinaryData) > 0 {
		t.Errorf("labels %v, finalizers %v, binary data %v: want none", cm.Labels, cm.Finalizers, cm.BinaryData)
	}
	if service(t, namespace, name) != nil {
		t.Error("its Service was created")
	}
	if hub.AuditLog() == "" {
		t.Log("the cluster has no audit log that can be read: requests that were refused are not seen")
		return
	}
	named := func(r kit.Request) bool { return r.Object.Name == name }
	wrote, err := kit.WholeAudit(hub.Cluster).FindNaming([]string{namespace}, kit.By(kit.LocalAgent), kit.In(namespace), kit.Request.IsWrite, named)
	if err != nil || len(wrote) > 0 {
		t.Errorf("the agent has written to %s: %v, %v", name, wrote, err)
	}
}
