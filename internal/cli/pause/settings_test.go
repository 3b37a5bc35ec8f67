package pause

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/internal/cli/apps"
	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit/clitest"
)

func (w change) text(err error) string {
	if err != nil {
		return "refused: " + err.Error()
	}
	text := w.done
	for _, name := range []string{application.HoldUntilAnnotation, application.ModeAnnotation} {
		if value, ok := w.annotations[name]; ok {
			text += "; " + strings.TrimPrefix(name, application.Prefix) + "="
			if value == nil {
				text += "-"
			} else {
				text += value.(string)
			}
		}
	}
	for _, warning := range w.warnings {
		text += "; warning: " + warning
	}
	return text
}

// liveWeb returns the Deployment of the Application web, as its agent has marked it.
func liveWeb(app *application.Application, annotations ...string) map[string]any {
	marks := map[string]any{}
	for name, value := range application.Marks(app.NamespacedName, app.UID, clitest.ID("Deployment", "web")).Annotations {
		marks[name] = value
	}
	for pair := range slices.Chunk(annotations, 2) {
		marks[pair[0]] = pair[1]
	}
	return map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"namespace": "demo", "name": "web", "uid": "uid-live", "annotations": marks},
	}
}

func TestSettingsOfApplications(t *testing.T) {
	hold, suspend, resume := holdSetting(clitest.Noon.Add(time.Hour), clitest.Noon), suspendSetting(), resumeSetting(clitest.Noon)
	const until, mode, by = application.HoldUntilAnnotation, application.ModeAnnotation, application.HeldByAnnotation
	const held = "held until 2026-01-02T13:00:00Z; hold-until=2026-01-02T13:00:00Z"
	future := clitest.Created("web", mode, "suspend")
	future.Annotations[application.FormatAnnotation] = "v9"
	for _, c := range []struct {
		why   string
		by    setting
		given *corev1.ConfigMap
		want  string
	}{
		{"a hold", hold, clitest.Created("web"), held},
		{"a shorter one takes its place", hold, clitest.Created("web", until, "2026-01-09T13:00:00Z"), held +
			"; warning: it was held until 2026-01-09T13:00:00Z, and this hold ends earlier: to restore the former one, kubectl krake hold web --until 2026-01-09T13:00:00Z"},
		{"it was that of another user", hold, clitest.Created("web", until, "2026-01-03T08:00:00+01:00", by, "ben\u202e"), held +
			"; warning: it was held until 2026-01-03T07:00:00Z by ben\\u202e, and this hold ends earlier: to restore the former one, kubectl krake hold web --until 2026-01-03T07:00:00Z"},
		{"what others are denied, the Application may have", hold, clitest.Created("web", application.HoldAnnotation, "deny"), held},
		{"one that goes", hold, clitest.Deleted(clitest.Created("web")), "refused: it is being deleted, and a hold does not keep its objects: annotation krake.dev/deletion-policy=orphan does"},
		{"suspend", suspend, clitest.Created("web"), "suspended; mode=suspend"},
		{"twice", suspend, clitest.Created("web", mode, "suspend"), "suspended already"},
		{"resume", resume, clitest.Created("web", mode, "suspend", until, "2026-01-02T13:00:00Z"), "resumed; hold-until=-; mode=-"},
		{"what cannot be read is taken off, too", resume, clitest.Created("web", until, "soon"), "neither held nor suspended: what was left of a former hold is taken off; hold-until=-"},
		{"a hold that is over", resume, clitest.Created("web", until, "2026-01-02T11:00:00Z"), "neither held nor suspended: what was left of a former hold is taken off; hold-until=-"},
		{"one for a newer version", resume, future, "resumed; mode=-"},
	} {
		if got := c.by.application; got == nil {
			t.Errorf("%s: not for Applications", c.why)
		} else if w, err := got(apps.ItemOf(c.given)); w.text(err) != c.want {
			t.Errorf("%s: %s\nwant %s", c.why, w.text(err), c.want)
		}
	}
}

func TestHoldsOfObjects(t *testing.T) {
	const mode, deny = application.ModeAnnotation, application.HoldAnnotation
	former := func(renewed bool, since time.Duration) *application.Hold {
		return &application.Hold{Until: metav1.NewTime(clitest.Noon.Add(30 * time.Minute)), Asked: "2026-01-02T12:30:00Z", Since: clitest.Ago(since), Renewed: renewed}
	}
	for _, c := range []struct {
		why         string
		annotations []string
		former      *application.Hold
		lasts       time.Duration
		strange     bool
		want        string
	}{
		{why: "a hold", lasts: time.Hour, want: "held until 2026-01-02T13:00:00Z; hold-until=2026-01-02T13:00:00Z"},
		{
			why: "longer", lasts: 5 * time.Hour,
			want: "held until 2026-01-02T17:00:00Z; hold-until=2026-01-02T17:00:00Z; warning: an agent holds an object for 4h at most, " +
				"unless its --max-hold says otherwise, so that this one is repaired from 2026-01-02T16:00:00Z on: to hold the whole Application for longer, kubectl krake hold web",
		},
		{
			why: "longer, and so is the Application's own", lasts: 5 * time.Hour, annotations: []string{application.HoldUntilAnnotation, "2026-01-03T12:00:00Z"},
			want: "held until 2026-01-02T17:00:00Z; hold-until=2026-01-02T17:00:00Z",
		},
		{why: "renewed", lasts: 2 * time.Hour, former: former(false, time.Hour), want: "held until 2026-01-02T14:00:00Z; hold-until=2026-01-02T14:00:00Z"},
		{
			why: "renewed again", lasts: 2 * time.Hour, former: former(true, time.Hour),
			want: "refused: it was held at 2026-01-02T11:00:00Z and renewed since, and no agent counts a second renewal: it is held until 2026-01-02T12:30:00Z at the latest: hold the whole Application (kubectl krake hold web)",
		},
		{
			why: "the owner denies it", lasts: time.Hour, annotations: []string{deny, "deny"},
			want: "refused: annotation krake.dev/hold of the Application is deny, so that a hold on one of its objects does not count: hold the whole Application (kubectl krake hold web)",
		},
		{
			why: "somebody else's object", lasts: time.Hour, strange: true,
			want: "refused: its annotation krake.dev/owner does not say that it belongs to the Application, whose agent leaves it alone: see condition Conflicted (kubectl krake describe web)",
		},
		{
			why: "nothing is repaired", lasts: time.Hour, annotations: []string{mode, "observe"},
			want: "held until 2026-01-02T13:00:00Z; hold-until=2026-01-02T13:00:00Z; warning: in mode observe the agent reverts nothing, so this hold has no effect until the mode is removed (kubectl krake resume web)",
		},
	} {
		stored := clitest.Recorded(t, clitest.Admitted(t, clitest.Created("web", c.annotations...)), func(app *application.Application) { app.Status.Objects[0].Hold = c.former })
		app := apps.ItemOf(stored).App
		live := liveWeb(app)
		if c.strange {
			live["metadata"].(map[string]any)["annotations"] = map[string]any{}
		}
		w, err := holdSetting(clitest.Noon.Add(c.lasts), clitest.Noon).object(app, clitest.ID("Deployment", "web"), live)
		check.Equal(t, c.why, c.want, w.text(err))
	}
}

func TestUntilOf(t *testing.T) {
	tokyo := clitest.Noon.In(time.FixedZone("JST", 9*60*60)) // 21:00
	for _, c := range []struct {
		why   string
		lasts time.Duration
		until string
		now   time.Time
		want  string
	}{
		{"for some time", 90 * time.Minute, "", clitest.Noon, "2026-01-02T13:30:00Z"},
		{"until a time", time.Hour, "2026-01-03T08:00:00+09:00", clitest.Noon, "2026-01-02T23:00:00Z"},
		{"until the clock here shows it", time.Hour, "23:30", tokyo, "2026-01-02T14:30:00Z"},
		{"tomorrow", time.Hour, "08:00", tokyo, "2026-01-02T23:00:00Z"},
		{"no time", 0, "", clitest.Noon, "--for: 0s holds nothing: name a duration of at least a second, as 90m"},
		{"past", time.Hour, "2026-01-02T11:59:00Z", clitest.Noon, "--until: 2026-01-02T11:59:00Z is past, so that nothing would be held: name a time that is to come"},
		{"in words", time.Hour, "tomorrow", clitest.Noon, "--until: it has to be a time as in RFC 3339: 2026-01-02T15:04:05Z, or that of a clock here: 15:04"},
	} {
		got, err := untilOf(c.lasts, c.until, c.now)
		text := env.TimeOf(got)
		if err != nil {
			text = err.Error()
		}
		check.Equal(t, c.why, c.want, text)
	}
}

func TestSubjectOf(t *testing.T) {
	for _, c := range []struct {
		why, arguments, selector, want string
	}{
		{"some", "a b", "", "a b"},
		{"an object of one", "a deployment/web", "", "a deployment/web"},
		{"by labels", "", "team=shop", "team=shop"},
		{"none", "", "", "no Application: name some, or choose them by --selector"},
		{"two objects", "a deployment/web service/web", "", "deployment/web and service/web: name one object at a time"},
		{"an object of nobody", "deployment/web", "", "deployment/web: name the one Application that has it, as NAME deployment/web"},
		{"an object of two", "a b deployment/web", "", "deployment/web: name the one Application that has it, as NAME deployment/web"},
		{"both", "a", "team=shop", "there are names and a --selector: leave one of the two out"},
	} {
		s, err := subjectOf(strings.Fields(c.arguments), c.selector)
		got := strings.Join(append(append([]string{}, s.applications...), strings.Fields(s.selector+" "+s.object)...), " ")
		if err != nil {
			got = err.Error()
		}
		check.Equal(t, c.why, c.want, got)
	}
}

func TestInInventory(t *testing.T) {
	app := apps.ItemOf(clitest.WebApp(t)).App
	elsewhere := clitest.ID("Service", "both")
	elsewhere.Namespace = "other"
	app.Inventory = append(app.Inventory, clitest.ID("Service", "both"), elsewhere)
	for _, c := range []struct{ why, kind, group, name, want string }{
		{"held", "Deployment", "apps", "web", "apps/v1 Deployment demo/web"},
		{"a kind of another group", "Deployment", "example.org", "web", "the Application web has no object deployment/web: it has deployment/web, service/web, service/both, service/both"},
		{"in two namespaces", "Service", "", "both", "the Application has 2 objects service/both, in several namespaces: annotate the one that you mean with kubectl: krake.dev/hold-until"},
	} {
		id, err := inInventory(app, c.kind, c.group, c.name)
		got := id.String()
		if err != nil {
			got = err.Error()
		}
		check.Equal(t, c.why, c.want, got)
	}
	app.Inventory = []manifest.ID{}
	_, err := inInventory(app, "Service", "", "web")
	check.Fails(t, "nothing applied", err, "has no object yet")
}
