package cli

import (
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
)

// A hold on an object that does not differ is shown while the object has its annotation,
// whatever the agent's status says.
func TestHoldsInForce(t *testing.T) {
	until := timeOf(time.Now().Add(time.Hour))
	for _, c := range []struct {
		why string
		// asked is the annotation of the object. denied: the Application allows no holds.
		// other: the user may not read the object.
		asked         string
		denied, other bool
		wide, object  string // parts of the output of get and describe
		resumes       string
	}{
		{"held", until, false, false, "enforce, 1 object held", "held until " + until + "\n", "deployment/web is held by an annotation of its own"},
		{"the annotation was taken off", "", false, false, "enforce  ", "Current", ""},
		{"held no longer", timeOf(time.Now().Add(-time.Minute)), false, false, "enforce  ", "Current", ""},
		{"the owner denies holds", until, true, false, "enforce  ", "Current", ""},
		{"nobody knows", until, false, true, "enforce  ", "held until " + until + ", unless its annotation was taken off\n", "deployment/web may be held by an annotation of its own"},
	} {
		cluster := newCluster()
		cm := recorded(t, cluster.store(t, deployment+"---"+service, ""), func(app *application.Application) {
			at, err := application.ParseHold(until)
			check.Must(t, err)
			app.Status.Objects[0].Hold = &application.Hold{Until: metav1.NewTime(at), Asked: until, Since: metav1.Now()}
		})
		if c.denied {
			cm.Annotations[application.HoldAnnotation] = "deny"
		}
		live := markedAs("web", "1", parsed(t, deployment))
		if c.asked != "" {
			live["metadata"].(map[string]any)["annotations"].(map[string]any)[application.HoldUntilAnnotation] = c.asked
		}
		cluster[liveDeployment] = live
		if c.other {
			cluster[liveDeployment] = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden}
		}
		lease := "/apis/coordination.k8s.io/v1/namespaces/krake-agents/leases/" + application.HubLease(application.LocalCluster)
		cluster[lease] = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden}
		for command, want := range map[string]string{"get web -o wide": c.wide, "describe web": c.object, "resume web --dry-run=client": c.resumes} {
			out, says, status := cluster.run(t, nil, strings.Fields(command)...)
			if text := out + says; status != 0 || !strings.Contains(text, want) || want == "" && strings.Contains(text, "held by") ||
				c.object == "Current" && strings.Contains(text, "held until") {
				t.Errorf("%s: %s: %d: %s, want %s", c.why, command, status, text, want)
			}
		}
	}
}
