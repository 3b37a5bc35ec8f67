package cli

import (
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit/clitest"
)

// A command reports missing or wrong arguments before any request to a cluster.
func TestArguments(t *testing.T) {
	for arguments, want := range map[string]string{
		"diff":                           "name Applications, or a file by -f, and not both",
		"diff -f nowhere":                "no such file",
		"history a b":                    "name one Application, and not 2",
		"schema a b":                     "name one Application, or one object, and not 2",
		"schema":                         "the Application is missing",
		"schema web -f x":                "add --propose",
		"schema --propose a/b -f x":      "and not both",
		"schema --propose web":           "is not of the form KIND/NAME",
		"blame":                          "name one Application: kubectl krake blame NAME",
		"get configmap/web":              `"configmap/web" is no name of an Application: name it without a kind, as web`,
		"get -l !!":                      "--selector: unable to parse requirement",
		"schema web --explain a -o json": "leave out -o json",
		"blame web -o name":              "it has to be one of table, wide, json, yaml",
		"schema --propose":               "name an object as KIND/NAME, or a manifest by -f",
		"schema --propose --explain a b": "use one of them",
		"schema web --explain ..":        "is no path",
	} {
		clitest.Cluster{}.Check(t, commands, nil, arguments, "", want, 2)
	}
}

// A hold on an object that does not differ is shown while the object has its annotation,
// whatever the agent's status says.
func TestHoldsInForce(t *testing.T) {
	until := env.TimeOf(time.Now().Add(time.Hour))
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
		{"held no longer", env.TimeOf(time.Now().Add(-time.Minute)), false, false, "enforce  ", "Current", ""},
		{"the owner denies holds", until, true, false, "enforce  ", "Current", ""},
		{"it is not known", until, false, true, "enforce  ", "held until " + until + ", unless its annotation was taken off\n", "deployment/web may be held by an annotation of its own"},
	} {
		cluster := clitest.NewCluster()
		cm := clitest.Recorded(t, cluster.Store(t, clitest.Deployment+"---"+clitest.Service, ""), func(app *application.Application) {
			at, err := application.ParseHold(until)
			check.Must(t, err)
			app.Status.Objects[0].Hold = &application.Hold{Until: metav1.NewTime(at), Asked: until, Since: metav1.Now()}
		})
		if c.denied {
			cm.Annotations[application.HoldAnnotation] = "deny"
		}
		live := clitest.MarkedAs("web", "1", clitest.Parsed(t, clitest.Deployment))
		if c.asked != "" {
			live["metadata"].(map[string]any)["annotations"].(map[string]any)[application.HoldUntilAnnotation] = c.asked
		}
		cluster[clitest.LiveDeployment] = live
		if c.other {
			cluster[clitest.LiveDeployment] = clitest.Failure(http.StatusForbidden, metav1.StatusReasonForbidden)
		}
		lease := "/apis/coordination.k8s.io/v1/namespaces/krake-agents/leases/" + application.HubLease(application.LocalCluster)
		cluster[lease] = clitest.Failure(http.StatusForbidden, metav1.StatusReasonForbidden)
		for command, want := range map[string]string{"get web -o wide": c.wide, "describe web": c.object, "resume web --dry-run=client": c.resumes} {
			out, says, status := cluster.Run(t, commands, nil, strings.Fields(command)...)
			if text := out + says; status != 0 || !strings.Contains(text, want) || want == "" && strings.Contains(text, "held by") ||
				c.object == "Current" && strings.Contains(text, "held until") {
				t.Errorf("%s: %s: %d: %s, want %s", c.why, command, status, text, want)
			}
		}
	}
}
