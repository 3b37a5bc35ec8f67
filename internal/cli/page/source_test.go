package page

import (
	_ "embed"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/internal/cli/apps"
	"github.com/krake-observer/krake-observer/internal/cli/view"
	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/internal/ui"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit/clitest"
)

func toggled(t *testing.T, paths ...string) []lens.Toggle {
	t.Helper()
	var toggles []lens.Toggle
	for _, text := range paths {
		path, err := view.ParsePath(text)
		check.Must(t, err)
		toggles = append(toggles, lens.Toggle{Place: path})
	}
	return toggles
}

// commented is an observer schema of two objects, as a user writes it.
//
//go:embed testdata/commented.yaml
var commented string

// The schemas of other objects stay as they are written, with their comments.
func TestSchemaAfterKeepsOthers(t *testing.T) {
	ofService, ofDeployment, _ := strings.Cut(commented, "---   # and\n")
	for _, c := range []struct {
		why, schema string
		object      manifest.ID
		paths       []string
		want        string
	}{
		{
			"there is none: the default one is edited", "", clitest.ID("Service", "web"), []string{"spec.type"},
			"apiVersion: v1\nkind: Service\nmetadata:\n  name: web\nspec:\n  ports:\n  - port: null\n" +
				"  - observer_schema_list_max_length: 1\n    observer_schema_list_min_length: 1\n",
		},
		{
			"that of the first object", commented, clitest.ID("Service", "web"), []string{"spec.clusterIP"},
			"apiVersion: v1\nkind: Service\nmetadata:\n  name: web\nspec:\n  clusterIP: null\n  type: null\n---\n" + ofDeployment,
		},
		{
			"that of the second object", commented, clitest.ID("Deployment", "web"), []string{"spec.replicas", "spec.paused"},
			ofService + "---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  paused: null\n",
		},
		{
			"that of the other object only", ofService, clitest.ID("Deployment", "web"), []string{"spec.template", "spec.selector", "metadata.labels"},
			ofService + "---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  replicas: null\n",
		},
		{"nothing is toggled", ofService, clitest.ID("Service", "web"), nil, "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\nspec:\n  type: null\n"},
	} {
		t.Run(c.why, func(t *testing.T) {
			app := clitest.AdmittedOf(t, clitest.Service+"---"+clitest.Deployment, c.schema)
			got, err := schemaAfter(app, clitest.ExpectedOf(t, app), c.object, toggled(t, c.paths...))
			check.Must(t, err)
			check.Equal(t, "schema", c.want, got)
			clitest.Prepared(t, clitest.Service+"---"+clitest.Deployment, got) // the webhook accepts it
			again, err := schemaAfter(app, clitest.ExpectedOf(t, app), c.object, toggled(t, c.paths...))
			check.Must(t, err)
			check.Equal(t, "the same again: it changes no state", got, again)
		})
	}
}

func TestSchemaAfterRefusesWhatItCannotKeep(t *testing.T) {
	list := "- {apiVersion: v1, kind: Service, metadata: {name: web}, spec: {type: null}}\n"
	app := clitest.AdmittedOf(t, clitest.Service+"---"+clitest.Deployment, list)
	_, err := schemaAfter(app, clitest.ExpectedOf(t, app), clitest.ID("Service", "web"), toggled(t, "spec.type"))
	check.Fails(t, "a List", err, "the observer schemas are in one YAML list: write them as documents, with --- between them")
	// The List stays, if it has not the schema of the object.
	got, err := schemaAfter(app, clitest.ExpectedOf(t, app), clitest.ID("Deployment", "web"), toggled(t, "spec.replicas"))
	check.Must(t, err)
	check.Equal(t, "List", list, got[:min(len(list), len(got))])
	_, err = schemaAfter(app, clitest.ExpectedOf(t, app), clitest.ID("Service", "other"), nil)
	check.Fails(t, "an object that is not wanted", err, "the Application demo/web does not want v1 Service demo/other")
}

// No text of the schema ends the command before its end, and the shell reads nothing of it.
func TestPatchCommandIsOneCommand(t *testing.T) {
	for _, text := range []string{"kind: Service\n", "# EOF\n", "EOF\n", "a: |\n  EOF\nEOF_\n", "EOF__EOF_ EOF", "$(rm -r /) `x` '\n' \\\n", "", "a: \"\u202e\x00\""} {
		command := patchCommand(clitest.Created("web"), text, "")
		first, rest, _ := strings.Cut(command, "\n")
		head, end, ok := strings.Cut(first, " <<'")
		check.Equal(t, "command", "kubectl patch configmap web --namespace demo --type merge --patch-file /dev/stdin", head)
		end = strings.TrimSuffix(end, "'")
		lines := strings.Split(rest, "\n")
		at := slices.Index(lines, end)
		check.Equal(t, fmt.Sprintf("%q: the end is that of the document %v", text, ok), len(lines)-2, at)
		var patch struct{ Data map[string]string }
		check.Must(t, yaml.Unmarshal([]byte(strings.Join(lines[:max(at, 0)], "\n")+"\n"), &patch))
		check.Equal(t, "what it sets", map[string]string{application.ObserverSchemaKey: text}, patch.Data)
	}
}

// sourceOf returns what the page reads from this cluster.
func sourceOf(t *testing.T, c clitest.Cluster) *source {
	t.Helper()
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	e, _, _ := (&clitest.Hub{URL: server.URL}).Environment()
	e.Hub.CacheDir = new(t.TempDir())
	return newSource(e, apps.Scope{})
}

// testPage is a page's view of the Applications, at a time that a test sets.
type testPage struct {
	appRows

	now  time.Time
	told []ui.Change
}

func newTestPage(t *testing.T) *testPage {
	t.Helper()
	e, _, _ := clitest.NewHub(t).Environment()
	f := &testPage{now: clitest.Noon}
	e.Now = func() time.Time { return f.now }
	f.appRows = appRows{source: newSource(e, apps.Scope{}), rows: map[types.NamespacedName]*appRow{}, changed: func(c ui.Change) { f.told = append(f.told, c) }}
	return f
}

// last returns the change that was told last, and fails if it is not the only new one.
func (f *testPage) last(t *testing.T) ui.Change {
	t.Helper()
	if len(f.told) != 1 {
		t.Fatalf("%d changes were told: %+v", len(f.told), f.told)
	}
	last := f.told[0]
	f.told = nil
	return last
}

func (f *testPage) beat(t *testing.T, ago time.Duration) {
	t.Helper()
	h := clitest.NewHub(t)
	h.Beat(application.LocalCluster, ago)
	f.beats = apps.Heartbeats{Read: true, Leases: map[string]coordinationv1.LeaseSpec{h.Leases[0].Name: h.Leases[0].Spec}}
}

func TestRowsFollowTheApplications(t *testing.T) {
	f := newTestPage(t)
	f.take(apps.Change{Listed: true, Items: []apps.Item{apps.ItemOf(clitest.WebApp(t)), apps.ItemOf(clitest.HeldApp(t))}})
	all := f.last(t)
	check.Equal(t, "listed", true, all.Listed)
	check.Equal(t, "rows", 2, len(all.Rows))
	web := all.Rows[0]
	check.Equal(t, "web", []string{"web", "RUNNING", "True", "4", "local"}, []string{web.Name, web.State.Text, web.Ready.Text, web.Drifts.Text, web.Cluster})
	held := all.Rows[1]
	check.Equal(t, "held", []string{"held", "RUNNING", "False", "1 (1 open)"}, []string{held.Name, held.State.Text, held.Ready.Text, held.Drifts.Text})
	// Only what was repaired is a repair.
	var repairs []string
	for _, repair := range all.Repairs {
		repairs = append(repairs, repair.Name+" "+clitest.Noon.Sub(repair.At).String())
	}
	check.Equal(t, "repairs", []string{"web 5m0s", "web 2h0m0s"}, repairs)
	f.take(apps.Change{Gone: true, Items: []apps.Item{apps.ItemOf(clitest.WebApp(t))}})
	check.Equal(t, "gone", []types.NamespacedName{{Namespace: "demo", Name: "web"}}, f.last(t).Gone)
	f.now = clitest.Noon.Add(24 * time.Hour)
	f.look()
	check.Equal(t, "what is gone does not change", 1, len(f.last(t).Rows))
	f.take(apps.Change{Listed: true})
	f.last(t)
	f.look()
	check.Empty(t, "changes", f.told)
}

// No event reports the silence of an agent: the rows change with the time.
func TestSilenceOfAnAgentChangesTheRows(t *testing.T) {
	f := newTestPage(t)
	f.beat(t, 0)
	f.take(apps.Change{Listed: true, Items: []apps.Item{apps.ItemOf(clitest.WebApp(t)), apps.ItemOf(clitest.Created("raw"))}})
	f.last(t)
	f.look()
	check.Empty(t, "changes while it is heard", f.told)
	f.now = clitest.Noon.Add(41 * time.Second)
	f.look()
	told := f.last(t)
	check.Equal(t, "it is no list", false, told.Listed)
	check.Equal(t, "rows: no agent sees one that was not admitted", 1, len(told.Rows))
	row := told.Rows[0]
	check.Equal(t, "row", []string{"web", "AgentUnreachable", "Unknown"}, []string{row.Name, row.State.Text, row.Ready.Text})
	if row.State.Tone != ui.Bad || !strings.Contains(row.Message, "was heard at") {
		t.Errorf("%+v", row)
	}
	f.look()
	check.Empty(t, "changes while it is silent", f.told)
	f.beat(t, -41*time.Second)
	f.look()
	check.Equal(t, "state after it is heard again", "RUNNING", f.last(t).Rows[0].State.Text)
}

func TestHoursCountEachRecordOnce(t *testing.T) {
	f := newTestPage(t)
	app := clitest.Recorded(t, clitest.Admitted(t, clitest.Created("web")), func(app *application.Application) {
		for _, ago := range []time.Duration{-time.Minute, 0, 59 * time.Minute, time.Hour, 23*time.Hour + 59*time.Minute, 24 * time.Hour, 1000 * time.Hour} {
			app.Status.Drifts = append(app.Status.Drifts, clitest.Rescaled(ago, 2)) // of which one may be older
		}
	})
	f.take(apps.Change{Listed: true, Items: []apps.Item{apps.ItemOf(app)}})
	hours := f.last(t).Rows[0].Hours
	check.Equal(t, "hours", [24]int{0: 1, 22: 1, 23: 3}, hours)
	f.now = clitest.Noon.Add(time.Hour)
	f.look()
	check.Equal(t, "hours an hour later", [24]int{21: 1, 22: 2, 23: 1}, f.last(t).Rows[0].Hours)
}

// As in the other commands, the mode counts before the hold: in mode suspend, nothing begins at the end of the hold.
func TestModeCountsBeforeAHold(t *testing.T) {
	f := newTestPage(t)
	for mode, want := range map[string]string{"enforce": "held until 2026-01-02T13:00:00Z", "observe": "observe", "suspend": "suspend"} {
		app := clitest.Admitted(t, clitest.Created("web", application.ModeAnnotation, mode, application.HoldUntilAnnotation, "2026-01-02T13:00:00Z"))
		f.take(apps.Change{Listed: true, Items: []apps.Item{apps.ItemOf(app)}})
		check.Equal(t, "mode", want, f.last(t).Rows[0].Mode)
	}
}

// A CustomResourceDefinition may be created while the page is open. Discovery is not read again each time.
func TestKindsThatAreServedLaterAreFound(t *testing.T) {
	c := clitest.NewCluster()
	c[clitest.LiveDeployment] = clitest.MarkedAs("web", "1", clitest.Parsed(t, clitest.Deployment))
	served := c["/apis"]
	c["/apis"] = metav1.APIGroupList{}
	s := sourceOf(t, c)
	now := clitest.Noon
	s.Now = func() time.Time { return now }
	clients, err := s.ObjectsOf(application.LocalCluster)
	check.Must(t, err)
	_, err = clients.Live(t.Context(), clitest.ID("Deployment", "web"))
	check.Fails(t, "at first", err, "does not serve it")
	c["/apis"] = served
	now = clitest.Noon.Add(renewalInterval - time.Second)
	_, err = clients.Live(t.Context(), clitest.ID("Deployment", "web"))
	check.Fails(t, "soon after that", err, "does not serve it")
	now = clitest.Noon.Add(renewalInterval)
	live, err := clients.Live(t.Context(), clitest.ID("Deployment", "web"))
	check.Must(t, err)
	check.Equal(t, "it is read", true, live != nil)
}

// The page says why it is not up to date.
func TestFollowFailsWithTheReason(t *testing.T) {
	for range 100 { // two parts of it end at the same time
		h := clitest.NewHub(t)
		h.Refuse("configmaps", apierrors.NewForbidden(apischema.GroupResource{Resource: "configmaps"}, "", nil))
		h.Refuse("leases", apierrors.NewForbidden(apischema.GroupResource{Resource: "leases"}, "", nil))
		e, _, _ := h.Environment()
		err := newSource(e, apps.Scope{}).Follow(t.Context(), func(ui.Change) {})
		if check.Fails(t, "follow", err, "watch the Applications: "); t.Failed() {
			return
		}
	}
}

func rowsOf(d described) [][]string {
	var rows [][]string
	for _, row := range d.objectRows() {
		rows = append(rows, []string{row.Title, row.Health.Text, row.Reason.Text})
	}
	return rows
}

func describedOf(t *testing.T, edit func(app *application.Application)) described {
	t.Helper()
	return described{view.Description{Item: apps.ItemOf(clitest.Recorded(t, clitest.Admitted(t, clitest.Created("web")), edit)), Now: clitest.Noon}}
}

// The agent has mapped the namespace, and in mode observe it holds nothing.
func TestObjectsOfAMappedNamespaceHaveAHealth(t *testing.T) {
	d := describedOf(t, func(app *application.Application) {
		app.Inventory = nil
		for i := range app.Status.Objects {
			app.Status.Objects[i].Namespace, app.Status.Objects[i].Reason = "apps", "ObserveMode"
		}
	})
	check.Equal(t, "rows", [][]string{{"Deployment/web in apps", "Current", "ObserveMode"}, {"Service/web in apps", "Current", "ObserveMode"}}, rowsOf(d))
}

// Objects of the status are shown, whether they are wanted or not.
func TestObjectsShowAllOfTheStatus(t *testing.T) {
	d := describedOf(t, nil)
	secret := clitest.ID("Secret", application.TokenSecret("web", application.Complete))
	d.App.Spec.Hooks.Complete = true
	d.App.Status.Objects = append(d.App.Status.Objects, application.ObjectStatus{ID: secret, Reason: "AlreadyExists"})
	all := [][]string{{"Deployment/web", "Current", ""}, {"Service/web", "Current", ""}, {"Secret/" + secret.Name, "", "AlreadyExists"}}
	check.Equal(t, "rows", all, rowsOf(d))
	for _, row := range d.objectRows() {
		check.Equal(t, row.Title+" has a page", !strings.HasPrefix(row.Title, "Secret"), row.Ref != ui.Ref{})
	}
	d.App.Spec.Manifest, d.App.Inventory = "kind: x", nil
	check.Equal(t, "rows without a readable manifest", all, rowsOf(d))
}

// Only the agent knows that a kind has no namespaces: the manifest does not show it.
func TestAClusterScopedObjectHasOneRow(t *testing.T) {
	d := describedOf(t, func(app *application.Application) {
		app.Inventory[1].Namespace, app.Status.Objects[1].Namespace = "", ""
		app.Adopted = []manifest.ID{app.Status.Objects[1].ID}
	})
	check.Equal(t, "rows", [][]string{{"Deployment/web", "Current", ""}, {"Service/web", "Current", "adopted"}}, rowsOf(d))
}

// The status keeps a hold that was taken off. The bar of one that is over stays.
func TestBarsShowHoldsInForce(t *testing.T) {
	held := apps.ItemOf(clitest.HeldApp(t))
	id := clitest.ID("Deployment", "web")
	for _, c := range []struct {
		why   string
		holds map[manifest.ID]bool
		until time.Time
		want  int
	}{
		{"it is held", map[manifest.ID]bool{id: true}, clitest.Noon.Add(time.Hour), 1},
		{"the object could not be read", nil, clitest.Noon.Add(time.Hour), 1},
		{"its annotation was taken off", map[manifest.ID]bool{id: false}, clitest.Noon.Add(time.Hour), 0},
		{"the hold is over", nil, clitest.Noon, 1},
	} {
		held.Holds, held.App.Status.Objects[0].Hold.Until = c.holds, metav1.NewTime(c.until)
		check.Equal(t, c.why, c.want, len(described{view.Description{Item: held, Now: clitest.Noon}}.bars()))
	}
}

// outcomesOf returns the parts of a forecast, each in a line.
func outcomesOf(f ui.Forecast) string {
	var lines strings.Builder
	for _, part := range f.Parts {
		lines.WriteString(part.Title + ": " + string(part.Tone) + ": " + part.Outcome + "\n")
	}
	return lines.String()
}

// As kubectl krake diff -f does, the page shows the others.
func TestForecastContinuesAfterAFailure(t *testing.T) {
	c := clitest.NewCluster()
	c[clitest.LiveDeployment] = clitest.Failure(http.StatusForbidden, metav1.StatusReasonForbidden)
	s := sourceOf(t, c)
	found, err := s.Forecast(t.Context(), "web", clitest.Deployment+"---"+clitest.Service)
	check.Must(t, err)
	check.Equal(t, "an object that may not be read", "apps/v1 Deployment demo/web: bad: read apps/v1 Deployment demo/web: no\n"+
		"v1 Service demo/web: busy: would be created\n", outcomesOf(found))

	first := clitest.InFile(clitest.Service)["web.yaml"]
	refused := strings.NewReplacer("name: web, ann", "name: other, ann", "{name: web}", "{name: web, uid: x}").Replace(first)
	found, err = s.Forecast(t.Context(), "", first+"---\n"+refused+"---"+clitest.Service)
	check.Must(t, err)
	check.Equal(t, "a refused Application", "v1 Service demo/web: busy: would be created\n"+
		"Application other: bad: the text: the Application other would be refused: mend this mistake\n", outcomesOf(found))
	said := strings.Join(found.Said, "\n")
	if !strings.Contains(said, "data.spec.manifest[0].metadata.uid: Forbidden") || !strings.Contains(said, "left out, not an Application: v1 Service web") {
		t.Errorf("said: %s", said)
	}
	_, err = s.Forecast(t.Context(), "", refused)
	check.Fails(t, "it is all that there is", err, "would be refused: mend this mistake")
}
