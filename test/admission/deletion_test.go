package admission

import (
	"testing"

	"github.com/krake-observer/krake-observer/test/kit"
)

// Every way to delete an Application works without the webhook. The garbage collector
// must remove a finalizer for that, and does not meet the webhook.
func TestDeletionsWithoutTheWebhook(t *testing.T) {
	namespace := newNamespace(t)
	ways := []string{"background", "foreground", "orphan"}
	for _, way := range ways {
		mustRun(t, namespace, way)
	}
	killWebhook(t)
	for _, way := range ways {
		text, err := admin.kubectl("", "--namespace", namespace, "delete", "configmap", way, "--cascade", way, "--timeout", kit.Timeout.String())
		if err != nil {
			t.Errorf("%s: %v\n%s", way, err, text)
		}
		if get(t, namespace, way) != nil || service(t, namespace, way) != nil {
			t.Errorf("%s: the Application or its Service is still there", way)
		}
	}
}
