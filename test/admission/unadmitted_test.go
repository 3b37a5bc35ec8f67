package admission

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// policy begins all refusals of the policy.
const policy = "ValidatingAdmissionPolicy 'krake-application'"

// Threat A11 of the security specification: an administrator deletes the webhook's configuration. An
// Application that is created then has no authority: no agent acts on it, and its status cannot be forged.
// When the configuration is back, any edit admits it.
func TestUnadmittedApplicationIsNotCarriedOut(t *testing.T) {
	namespace := newNamespace(t)
	mustRun(t, namespace, "web")
	withoutConfiguration(t)

	t.Run("an Application is stored as it was sent, and not acted upon", func(t *testing.T) {
		kit.Must(t, create(t, low, newApplication(namespace, "new")))
		notActedUpon(t, namespace, "new")
	})
	t.Run("status cannot be forged", func(t *testing.T) {
		for _, who := range []user{low, root} {
			for name, forge := range forgeries() {
				app := newApplication(namespace, "forged")
				forge(app)
				if err := create(t, who, app); err == nil || !strings.Contains(err.Error(), policy) {
					t.Errorf("%s creates an Application with %s: %s", who, name, errorText(err))
				}
				for _, existing := range []string{"new", "web"} {
					if err := change(t, who, namespace, existing, forge); err == nil || !strings.Contains(err.Error(), policy) {
						t.Errorf("%s gives %s %s: %s", who, existing, name, errorText(err))
					}
				}
			}
			for _, existing := range []string{"new", "web"} {
				complain(t, patch(t, who, namespace, existing, stripAndForge), policy)
			}
		}
		notActedUpon(t, namespace, "new")
	})
	t.Run("what was admitted before is carried out", func(t *testing.T) { mustHeal(t, namespace, "web") })

	applyAgain(t, t.Context())
	t.Run("an edit admits the Application", func(t *testing.T) {
		notActedUpon(t, namespace, "new")
		kit.Must(t, patch(t, editor, namespace, "new", `{"metadata": {"annotations": {"example.com/note": "x"}}}`))
		eventuallyState(t, application.StateRunning, namespace, "new")
		if service(t, namespace, "new") == nil {
			t.Error("there is no Service")
		}
	})
}

// forgeries are changes that users may never make, by name.
func forgeries() map[string]func(cm *corev1.ConfigMap) {
	data := func(key string) func(*corev1.ConfigMap) {
		return func(cm *corev1.ConfigMap) { cm.Data[key] = "[]" }
	}
	binary := func(key string) func(*corev1.ConfigMap) {
		return func(cm *corev1.ConfigMap) {
			delete(cm.Data, key) // the API server refuses a key that is in both
			cm.BinaryData = map[string][]byte{key: []byte("[]")}
		}
	}
	return map[string]func(cm *corev1.ConfigMap){
		"a status":                      data(application.StatusKey),
		"learned values":                data(application.LearnedKey),
		"a last observed manifest":      data(application.LastObservedKey),
		"an inventory":                  data(application.InventoryKey("local")),
		"an inventory of another agent": data(application.InventoryKey("other")),
		"a status in binary":            binary(application.StatusKey),
		"an inventory in binary":        binary(application.InventoryKey("local")),
		"a finalizer":                   func(cm *corev1.ConfigMap) { cm.Finalizers = append(cm.Finalizers, application.Finalizer("other")) },
		"a state that it does not have": func(cm *corev1.ConfigMap) { cm.Labels = map[string]string{application.StateLabel: "FAILED"} },
	}
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
	wrote := kit.WholeAudit(hub.Cluster).Requests(t, kit.By(kit.LocalAgent), kit.In(namespace), kit.Request.IsWrite, named)
	if len(wrote) > 0 {
		t.Errorf("the agent has written to %s: %v", name, wrote)
	}
}
