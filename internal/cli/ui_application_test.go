package cli

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/internal/ui"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check"
)

// rowsOf returns title, health and reason of each row.
func rowsOf(d description) [][]string {
	var rows [][]string
	for _, row := range d.uiObjects() {
		rows = append(rows, []string{row.Title, row.Health.Text, row.Reason.Text})
	}
	return rows
}

func describedOf(t *testing.T, edit func(app *application.Application)) description {
	t.Helper()
	return description{item: itemOf(recorded(t, admitted(t, created("web")), edit)), now: noon}
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
	secret := idOf("Secret", application.TokenSecret("web", application.Complete))
	d.app.Spec.Hooks.Complete = true
	d.app.Status.Objects = append(d.app.Status.Objects, application.ObjectStatus{ID: secret, Reason: "AlreadyExists"})
	all := [][]string{{"Deployment/web", "Current", ""}, {"Service/web", "Current", ""}, {"Secret/" + secret.Name, "", "AlreadyExists"}}
	check.Equal(t, "rows", all, rowsOf(d))
	for _, row := range d.uiObjects() {
		check.Equal(t, row.Title+" has a page", !strings.HasPrefix(row.Title, "Secret"), row.Ref != ui.Ref{})
	}
	d.app.Spec.Manifest, d.app.Inventory = "kind: x", nil
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
	held := itemOf(heldApp(t))
	id := idOf("Deployment", "web")
	for _, c := range []struct {
		why   string
		holds map[manifest.ID]bool
		until time.Time
		want  int
	}{
		{"it is held", map[manifest.ID]bool{id: true}, noon.Add(time.Hour), 1},
		{"the object could not be read", nil, noon.Add(time.Hour), 1},
		{"its annotation was taken off", map[manifest.ID]bool{id: false}, noon.Add(time.Hour), 0},
		{"the hold is over", nil, noon, 1},
	} {
		held.holds, held.app.Status.Objects[0].Hold.Until = c.holds, metav1.NewTime(c.until)
		check.Equal(t, c.why, c.want, len(description{item: held, now: noon}.bars()))
	}
}
