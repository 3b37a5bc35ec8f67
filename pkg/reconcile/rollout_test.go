package reconcile_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
)

// A rollout of 20 Pods reports its progress again and again: the hub gets its begin, its end, and one text in between. The last
// text of one that is stuck arrives though nothing happens after it, and a restarted agent writes it too.
func TestARolloutIsThreeWrites(t *testing.T) {
	for name, each := range map[string]struct {
		replaced int
		restart  bool
	}{
		"complete": {20, false}, "stuck": {10, false}, "stuck, and the agent is restarted": {10, true},
	} {
		t.Run(name, func(t *testing.T) {
			const web = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web},
  spec: {replicas: 20, template: {spec: {containers: [{name: main, image: "main:%d"}]}}}}`
			w := running(t, fmt.Sprintf(web, 1), "")
			w.answer = func(live map[string]any) {
				writes(int64(2), "metadata", "generation")(live)
				writes(int64(1), "status", "observedGeneration")(live)
			}
			w.now = w.now.Add(time.Hour)
			w.respec(fmt.Sprintf(web, 2), "")
			due := w.mustPass(t)
			w.checkState(t, application.StateDegraded)
			w.checkReason(t, application.ReadyCondition, "InProgress")
			written := len(w.callsOf("Write"))
			for i := range each.replaced {
				w.change(t, "Deployment web", func(live *unstructured.Unstructured) {
					live.Object["status"] = map[string]any{
						"observedGeneration": int64(2), "replicas": int64(20), "updatedReplicas": int64(i + 1),
						"readyReplicas": int64(20), "availableReplicas": int64(20),
						"conditions": []any{map[string]any{"type": "Available", "status": "True"}},
					}
				})
				due = w.after(t, time.Second)
				written += len(w.callsOf("Write"))
			}
			if each.replaced == 20 {
				w.checkReady(t, application.StateRunning, "Ready", ready)
			} else {
				const last = "Updated: 10/20"
				check.Equal(t, "is stored", false, strings.Contains(w.cm.Data[application.StatusKey], last))
				if each.restart {
					w.restart()
				}
				due = w.after(t, due)
				written += len(w.callsOf("Write"))
				w.checkReady(t, application.StateDegraded, "InProgress", "apps/v1 Deployment demo/web: InProgress: "+last)
			}
			checkRange(t, "writes", 0, 3, written)
			check.Equal(t, "a pass is due", time.Duration(0), due)
		})
	}
}
