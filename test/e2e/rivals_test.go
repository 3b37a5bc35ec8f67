package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/test/kit"
)

// A rival changes an observed field every 100 ms. The agent repairs it ever more rarely. The Application and an Event
// name the rival and the remedy, and another Application is repaired meanwhile.
func TestRivalIsNamedAndSlowsNoOtherApplication(t *testing.T) {
	kit.Long(t, "a fight of a minute")
	const lasts, most = time.Minute, 15
	fought, other := newNginx(t), newNginx(t)
	awaitCalm(t, fought)
	before := auditMark(t)
	flips := make(chan int, 1)
	go func() { flips <- flip(t, fought, lasts) }()

	const path = "spec.ports[0].targetPort"
	message := eventuallyCondition(t, fought, "nginx", "Contended", "True", "CompetingWriter")
	checkNames(t, message, "Service "+fought+"/nginx", path, "rival", "leave "+path+" out of the observer schema")
	eventuallyNotes(t, fought, "Contended", func(notes []string) bool {
		return len(notes) == 1 && strings.Contains(notes[0], "rival") && strings.Contains(notes[0], path)
	})
	hub.Kubectl(t, "--namespace", other, "set", "image", "deployment/nginx", "nginx=nginx:evil")
	hub.EventuallyField(t, "nginx:1.27", kit.Deployments, other, "nginx", "spec", "template", "spec", "containers", 0, "image")
	changed := <-flips
	if made := repairs(t, before, fought); len(made) > most || len(made) < 5 {
		t.Errorf("%d repairs of %d changes, want 5 fast ones, and %d at most", len(made), changed, most)
	}
	eventuallyCondition(t, other, "nginx", "Contended", "False", "NoCompetingWriter")
}

// flip changes the port of a Service every 100 ms, and returns the number of changes.
func flip(t *testing.T, namespace string, lasts time.Duration) (changes int) {
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for ; ; changes++ {
		patch := fmt.Sprintf(`{"spec": {"ports": [{"port": 80, "targetPort": %d}]}}`, 90+changes%2)
		_, err := hub.Dynamic.Resource(kit.Services).Namespace(namespace).Patch(ctx, "nginx", types.MergePatchType,
			[]byte(patch), metav1.PatchOptions{FieldManager: "rival"})
		if err != nil && ctx.Err() == nil {
			t.Error(err)
		}
		select {
		case <-ctx.Done():
			return changes
		case <-ticker.C:
		}
	}
}
