package inspect

import (
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit/clitest"
)

// The exit status reports whether there is a difference. If an object cannot be compared, the
// others are still reported.
func TestDiffOfWhatIsStored(t *testing.T) {
	c := clitest.NewCluster()
	c.Store(t, clitest.Deployment+"---"+clitest.Service, "")
	c[clitest.LiveDeployment] = clitest.MarkedAs("web", "1", clitest.Parsed(t, clitest.Deployment))
	c[clitest.LiveService] = clitest.MarkedAs("web", "1", clitest.Parsed(t, clitest.Service))
	c.Check(t, Commands, nil, "diff web", "", "", 0)
	c[clitest.LiveService] = clitest.MarkedAs("web", "1", clitest.Parsed(t, strings.Replace(clitest.Service, "80", "81", 1)))
	if out, says, status := c.Run(t, Commands, nil, "diff", "web"); !strings.Contains(out, "this would be removed: {\"port\":81}\n") || strings.Contains(out, "Deployment") || says != "" || status != 1 {
		t.Errorf("a Service differs: %d: %s%s", status, out, says)
	}
	c[clitest.LiveDeployment] = metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Message: "you may not", Code: http.StatusForbidden}
	c.Check(t, Commands, nil, "diff web", "this would be removed: {\"port\":81}\n", "read apps/v1 Deployment demo/web: you may not", 2)
	delete(c, "/apis/apps/v1")
	if out, says, status := c.Run(t, Commands, nil, "diff", "web", "nowhere"); !strings.Contains(out, "+  - port: 80") || !strings.Contains(says, "the cluster with the objects does not serve it") || !strings.Contains(says, "there is no Application nowhere") || status != 2 {
		t.Errorf("a kind is not served: %d: %s%s", status, out, says)
	}
}

// An object that was removed from the Application, but still exists, is reported if it is
// ours.
func TestDiffOfWhatLeft(t *testing.T) {
	c := clitest.NewCluster()
	cm := c.Store(t, clitest.Service, "")
	cm.Data[application.InventoryKey(application.LocalCluster)] = `[{"apiVersion":"v1","kind":"Service","namespace":"demo","name":"web"},{"apiVersion":"apps/v1","kind":"Deployment","namespace":"demo","name":"web"}]`
	c[clitest.LiveService] = clitest.MarkedAs("web", "1", clitest.Parsed(t, clitest.Service))
	for _, gone := range []any{nil, clitest.Parsed(t, clitest.Deployment)} {
		if c[clitest.LiveDeployment] = gone; gone == nil {
			delete(c, clitest.LiveDeployment)
		}
		c.Check(t, Commands, nil, "diff web", "", "", 0)
	}
	c[clitest.LiveDeployment] = clitest.MarkedAs("web", "1", clitest.Parsed(t, clitest.Deployment))
	c.Check(t, Commands, nil, "diff web", "# apps/v1 Deployment demo/web: it left the Application, and would be deleted\n", "", 1)
}

// The output for an Application that no agent carries out.
func TestDiffOfWhatIsNotCarriedOut(t *testing.T) {
	c := clitest.NewCluster()
	cm := c.Store(t, clitest.Service, "")
	cm.Data[application.LearnedKey] = "{"
	c[clitest.LiveService] = clitest.MarkedAs("web", "1", clitest.Parsed(t, clitest.Service))
	c.Check(t, Commands, nil, "diff web", "", "what was learned for the Application demo/web cannot be read", 0)
	delete(cm.Data, application.LearnedKey)
	cm.Labels = nil
	c.Check(t, Commands, nil, "diff web", "", "the Application demo/web was never admitted", 0)
	cm = c.Store(t, clitest.Service, "")
	cm.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	c.Check(t, Commands, nil, "diff web", "# Application demo/web: it is being deleted", "", 1)
	cm.Data[application.ManifestKey] = "kind: x"
	c.Check(t, Commands, nil, "diff web", "", "error: the Application demo/web: refused: data.spec.manifest[0].apiVersion", 2)
}

// For a file, the output lists what would be created and changed, whether or not it is stored.
func TestDiffOfAFile(t *testing.T) {
	c := clitest.NewCluster()
	internal := strings.Replace(clitest.Service, "NodePort", "ClusterIP", 1)
	for _, step := range []struct {
		why    string
		live   func() // later changes on the cluster
		file   string
		want   string // empty: no output
		says   string // for stderr
		status int
	}{
		{"a Service would be created", func() {}, clitest.Service, "@@ -0,0 +1,8 @@", "", 1},
		{"one is there", func() { c[clitest.LiveService] = clitest.Parsed(t, clitest.Service) }, clitest.Service, "conflict: it exists", "", 1},
		{"adoption was asked for by an annotation that the file has not, and that stays, as after kubectl apply", func() {
			c.Store(t, clitest.Service, "").Annotations[application.AdoptAnnotation] = "true"
		}, clitest.Service, "it would be adopted", "", 1},
		{"the type would be changed", func() {
			c.Store(t, internal, "")
			c[clitest.LiveService] = clitest.MarkedAs("web", "1", clitest.Parsed(t, internal))
		}, clitest.Service, "@@\n spec:\n   ports:\n   - port: 80\n-  type: ClusterIP\n+  type: NodePort\n", "", 1},
		{"it is what is stored", func() {}, internal, "", "", 0},
		{"it would be refused", func() {}, strings.Replace(clitest.Service, "name: web", "name: web, uid: x", 1), "", "web.yaml:8: data.spec.manifest[0].metadata.uid: Forbidden", 2},
	} {
		step.live()
		t.Log(step.why)
		c.Check(t, Commands, clitest.InFile(step.file), "diff -f web.yaml", step.want, step.says, step.status)
	}
}

// The webhook is asked about a file, with a dry run. It may not be asked by all users.
func TestDiffOfAFileAsksTheWebhook(t *testing.T) {
	const warning = `data.spec.manifest[0]: the agent may not create services in namespace "demo": have an administrator grant it`
	for why, c := range map[string]struct {
		refused any
		says    string
		status  int
	}{
		"it warns":           {nil, "web.yaml:7: warning: " + warning + "\n", 1},
		"the user may not":   {clitest.Failure(http.StatusForbidden, metav1.StatusReasonForbidden), "web.yaml:7: warning: " + warning + "\nnot admitted now: no\n", 1},
		"it refuses":         {clitest.Failure(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid), "web.yaml:7: warning: " + warning + "\nerror: no\n", 2},
		"it does not answer": {clitest.Failure(http.StatusInternalServerError, metav1.StatusReasonInternalError), "web.yaml:7: warning: " + warning + "\nnot admitted now: no\n", 1},
	} {
		t.Run(why, func(t *testing.T) {
			hub := clitest.NewCluster()
			hub["warning"], hub["dry run"] = warning, c.refused
			file := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, annotations: {krake.dev/application: v1}}\ndata:\n  spec.manifest: |\n" +
				"    # the Service\n    apiVersion: v1\n    kind: Service\n    metadata: {name: web}\n    spec: {ports: [{port: 80}]}\n"
			_, says, status := hub.Run(t, Commands, map[string]string{"web.yaml": file}, "diff", "-f", "web.yaml")
			if says != c.says || status != c.status {
				t.Errorf("%d: %s\nwant %d: %s", status, says, c.status, c.says)
			}
		})
	}
}

// The agent may write the status between the command's two requests: the second one has neither a
// resource version nor what the agent writes.
func TestDiffOfAFileSendsWhatDiffersOnly(t *testing.T) {
	hub := clitest.NewCluster()
	hub.Store(t, strings.TrimPrefix(clitest.Service, "\n"), "").ResourceVersion = "7"
	file := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, annotations: {krake.dev/application: v1}, labels: {team: shop}}\ndata:\n  spec.manifest: |\n" +
		"    " + strings.ReplaceAll(strings.TrimSpace(clitest.Service), "\n", "\n    ") + "\n"
	if _, says, status := hub.Run(t, Commands, map[string]string{"web.yaml": file}, "diff", "-f", "web.yaml"); status == 2 {
		t.Fatal(says)
	}
	check.Equal[any](t, "sent", `PATCH {"metadata":{"labels":{"team":"shop"}}}`, hub["sent"])
}

// A missing object that has ended is not compared, until its manifest changes.
func TestAnObjectThatHasEnded(t *testing.T) {
	const job = "{apiVersion: batch/v1, kind: Job, metadata: {name: load}, spec: {ttlSecondsAfterFinished: 5, template: {spec: {a: 1}}}}"
	app := clitest.AdmittedOf(t, job, "")
	expected := clitest.ExpectedOf(t, app)
	check.Equal(t, "without a record", false, hasEnded(app, expected[0]))
	digest, err := plan.DigestOf(expected[0].Manifest)
	check.Must(t, err)
	ended := application.ObjectStatus{ID: lens.Placed(app, expected[0].ID), Ended: &application.Ended{Manifest: digest, State: application.StateCompleted}}
	app.Status.Objects = []application.ObjectStatus{ended}
	check.Equal(t, "with one", true, hasEnded(app, expected[0]))
	changed := clitest.AdmittedOf(t, strings.Replace(job, "a: 1", "a: 2", 1), "")
	changed.Status.Objects = app.Status.Objects
	check.Equal(t, "with one of another manifest", false, hasEnded(changed, clitest.ExpectedOf(t, changed)[0]))
}
