package inspect

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/internal/cli/apps"
	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/cli/view"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit/clitest"
)

// manyApps returns a hub with one Application for each kind of output.
func manyApps(t *testing.T) *clitest.Hub {
	t.Helper()
	const cluster = application.ClusterAnnotation
	future := clitest.Created("future")
	future.Annotations[application.FormatAnnotation] = "v9"
	leaving := clitest.Recorded(t, clitest.Admitted(t, clitest.Created("leaving")), nil)
	leaving.DeletionTimestamp = new(clitest.Ago(time.Minute))
	edited := clitest.Recorded(t, clitest.Admitted(t, clitest.Created("edited")), nil)
	edited.Data[application.ManifestKey] += "# another\n"
	full := clitest.Recorded(t, clitest.Admitted(t, clitest.Created("full")), func(app *application.Application) {
		for i := range application.MaxDrifts {
			drift := clitest.Rescaled(time.Duration(i+1)*time.Minute, i+1)
			drift.Manager = strings.Repeat("m", i+1)
			app.Status.Drifts = append(app.Status.Drifts, drift)
		}
		clitest.SetConditions(app, clitest.Condition(application.ContendedCondition, metav1.ConditionTrue, "CompetingWriter", "apps/v1 Deployment demo/web: spec.replicas is changed again and again by m: leave spec.replicas out of the observer schema to allow that"))
	})
	h := clitest.NewHub(t, clitest.WebApp(t), clitest.HeldApp(t), future, leaving, edited, full,
		clitest.Created("raw"),
		clitest.Admitted(t, clitest.Created("fresh")),
		clitest.Recorded(t, clitest.Admitted(t, clitest.Created("silent", cluster, "east")), nil),
		clitest.Recorded(t, clitest.Admitted(t, clitest.Created("nobody", cluster, "west")), nil),
		clitest.Recorded(t, clitest.Admitted(t, clitest.Created("watching", application.ModeAnnotation, "observe")), nil),
		clitest.Recorded(t, clitest.Admitted(t, clitest.Created("paused", application.HoldUntilAnnotation, "2026-01-02T14:00:00Z")), nil),
		clitest.Elsewhere(clitest.WebApp(t), "prod"),
		clitest.Elsewhere(clitest.Created("raw"), "kube-system"),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "settings"}},
	)
	h.Beat(application.LocalCluster, 10*time.Second)
	h.Beat("east", 5*time.Minute)
	return h
}

func TestGet(t *testing.T) {
	for _, c := range []struct {
		why, file string
		arguments []string
	}{
		{"those of the namespace", "get.txt", nil},
		{"of all namespaces", "get-all.txt", []string{"-A"}},
		{"with what is wrong", "get-wide.txt", []string{"-o", "wide"}},
		{"of all, with all", "get-all-wide.txt", []string{"-A", "-o", "wide"}},
		{"two of them", "get-names.txt", []string{"web", "held"}},
		{"one as a document", "get-web.yaml", []string{"held", "-o", "yaml"}},
		{"several as a list", "get.json", []string{"web", "raw", "-o", "json"}},
	} {
		t.Run(c.why, func(t *testing.T) {
			manyApps(t).Golden(t, c.file, newGetCommand, c.arguments...)
		})
	}
}

// Missing Applications are reported, and the others are printed.
func TestGetFails(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("edith may not"))
	for _, c := range []struct {
		why, arguments   string
		refuse           *apierrors.StatusError
		out, errOut, err string // parts
	}{
		{"nobody of that name", "nobody-is-called-so", nil, "", "", "there is no Application nobody-is-called-so in namespace demo: name another namespace by -n"},
		{"one of two", "web nope", nil, "web    RUNNING", "", "there is no Application nope"},
		{"a name in all namespaces", "web -A", nil, "", "", "leave out -A, or the names"},
		{"a name and a selector", "web -l a=b", nil, "", "", "leave out -l, or the names"},
		{"no such labels", "-l team=blue", nil, "", "No Applications found whose labels match in demo namespace.", ""},
		{"no rights", "", forbidden, "", "", "edith may not"},
	} {
		t.Run(c.why, func(t *testing.T) {
			h := manyApps(t)
			if c.refuse != nil {
				h.Refuse("configmaps", c.refuse)
			}
			out, errOut, err := clitest.Run(t, h, newGetCommand, strings.Fields(c.arguments)...)
			check.Fails(t, c.arguments, err, c.err)
			if !strings.Contains(out, c.out) || (c.out == "") != (out == "") || !strings.Contains(errOut, c.errOut) {
				t.Errorf("prints %q and %q", out, errOut)
			}
		})
	}
}

// For programs, an empty list is still a list.
func TestGetNothingAsDocument(t *testing.T) {
	out, errOut, err := clitest.Run(t, clitest.NewHub(t), newGetCommand, "-o", "json")
	var list struct {
		APIVersion, Kind string
		Items            []any
	}
	if failure := json.Unmarshal([]byte(out), &list); failure != nil || err != nil || errOut != "" || list.Kind != "ApplicationList" || list.APIVersion != documentVersion || list.Items == nil {
		t.Errorf("%q, %q, %v, %v", out, errOut, err, failure)
	}
}

// A user without the right to read Leases gets no information about agents, and all the rest.
// If the request fails, the output reports it.
func TestGetWithoutLeases(t *testing.T) {
	for _, c := range []struct {
		why    string
		answer *apierrors.StatusError
		warns  bool
	}{
		{"no rights", apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "", errors.New("not you")), false},
		{"a server that fails", apierrors.NewInternalError(errors.New("etcd is away")), true},
	} {
		h := manyApps(t)
		h.Refuse("leases", c.answer)
		out, errOut, err := clitest.Run(t, h, newGetCommand, "silent", "nobody")
		if err != nil || strings.Count(out, "RUNNING") != 2 || strings.Contains(out, view.StateAgentUnreachable) {
			t.Errorf("%s: %v\n%s", c.why, err, out)
		}
		if warns := strings.HasPrefix(errOut, "Warning: whether the agents are heard is not known: "); warns != c.warns || !warns && errOut != "" {
			t.Errorf("%s: %q", c.why, errOut)
		}
	}
}

// A single agent is requested by name: a user may have the right to that Lease alone.
func TestGetAsksForOneLease(t *testing.T) {
	h := manyApps(t)
	_, _, err := clitest.Run(t, h, newGetCommand, "web")
	check.Must(t, err)
	requests := strings.Join(h.Requests(), "\n")
	if !strings.Contains(requests, "leases/krake-cluster-local") {
		t.Errorf("asked for\n%s", requests)
	}
}

// Silence is measured by the hub's clock.
func TestSilenceByTheHubsClock(t *testing.T) {
	for _, wrong := range []time.Duration{-time.Hour, time.Hour} {
		h := clitest.NewHub(t, clitest.WebApp(t), clitest.Recorded(t, clitest.Admitted(t, clitest.Created("silent", application.ClusterAnnotation, "east")), nil))
		h.Beat(application.LocalCluster, 10*time.Second)
		h.Beat("east", 5*time.Minute)
		e, out, _ := h.Environment()
		e.Now = func() time.Time { return clitest.Noon.Add(wrong) }
		err := clitest.Execute(t.Context(), e, newGetCommand, "-o", "wide")
		if text := out.String(); err != nil || !strings.Contains(text, "web      RUNNING") || !strings.Contains(text, "silent   AgentUnreachable") || !strings.Contains(text, "heard at 2026-01-02T11:55:00Z") {
			t.Errorf("a clock that is wrong by %s: %v\n%s", wrong, err, text)
		}
	}
}

// The output for programs has neither managed fields nor the last applied configuration.
func TestDocumentsLeaveOut(t *testing.T) {
	cm := clitest.WebApp(t)
	cm.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	cm.Annotations[corev1.LastAppliedConfigAnnotation] = "hunter2"
	out, _, err := clitest.Run(t, clitest.NewHub(t, cm), newGetCommand, "web", "-o", "yaml")
	var document map[string]any
	if failure := yaml.Unmarshal([]byte(out), &document); failure != nil || err != nil {
		t.Fatal(failure, err)
	}
	if strings.Contains(out, "managedFields") || strings.Contains(out, "hunter2") {
		t.Error(out)
	}
}

// Colours do not change the positions of columns.
func TestColoursKeepColumns(t *testing.T) {
	h := manyApps(t)
	e, _, _ := h.Environment()
	items, _, err := apps.List(t.Context(), e, "", metav1.ListOptions{})
	check.Must(t, err)
	printed := func(p env.Painter) string {
		var b strings.Builder
		o := getOptions{Scope: apps.Scope{All: true}, output: env.Output{Value: env.AsWide}}
		rows := [][]env.Cell{o.header()}
		for _, i := range items {
			rows = append(rows, o.row(view.OverviewOf(i, apps.Heartbeats{}, clitest.Noon), clitest.Noon))
		}
		check.Must(t, env.NewTable(&b, p).Print(rows...))
		return b.String()
	}
	coloured, plainly := printed(env.Painter{On: true}), printed(env.Painter{})
	check.Equal(t, "without its colours", plainly, regexp.MustCompile("\x1b\\[[0-9]+m").ReplaceAllString(coloured, ""))
	if !strings.Contains(coloured, string(env.Green)+"RUNNING"+string(env.Plain)) || strings.Contains(plainly, "\x1b") {
		t.Errorf("%q", coloured)
	}
}

// Names of Applications are completed, not those of other ConfigMaps.
func TestComplete(t *testing.T) {
	for _, c := range []struct {
		typed []string
		want  string
	}{
		{[]string{"get", ""}, "edited fresh full future held leaving nobody paused raw silent watching web :4"},
		{[]string{"get", "w"}, "watching web :4"},
		{[]string{"get", "web", "w"}, "watching :4"},
		{[]string{"describe", "se"}, ":4"},
		{[]string{"history", "wa"}, "watching :4"},
		{[]string{"history", "web", ""}, ":4"},
		{[]string{"get", "-o", ""}, "table wide json yaml :4"},
	} {
		e, out, _ := manyApps(t).Environment()
		check.Must(t, complete(t, e, c.typed...))
		check.Equal(t, strings.Join(c.typed, " "), c.want, strings.Join(strings.Fields(out.String()), " "))
	}
}

func complete(t *testing.T, e *env.Environment, typed ...string) error {
	t.Helper()
	root := &cobra.Command{Use: "krake"}
	root.AddCommand(newGetCommand(e), newDescribeCommand(e), newHistoryCommand(e))
	root.SetOut(e.Out)
	root.SetErr(e.ErrOut)
	root.SetArgs(append([]string{cobra.ShellCompRequestCmd}, typed...))
	return root.ExecuteContext(t.Context())
}

// Without the right to list, completion returns nothing: an error would not help there.
func TestCompleteWithoutRights(t *testing.T) {
	h := manyApps(t)
	h.Refuse("configmaps", apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("not you")))
	e, out, _ := h.Environment()
	if err := complete(t, e, "get", ""); err != nil || out.String() != ":1\n" {
		t.Errorf("%v, %q", err, out)
	}
}
