package ui

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

const shop = `apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME}
spec:
  replicas: 2
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec:
      containers:
      - name: web
        image: registry.example/shop:1.27
        env: [{name: LEVEL, value: hush-hush}]
---
apiVersion: v1
kind: Service
metadata: {name: NAME}
spec:
  selector: {app: NAME}
  ports: [{name: http, port: 80}]
`

// shopSchema observes the type of the Service, so that a value is pinned.
const shopSchema = `apiVersion: v1
kind: Service
metadata: {name: NAME}
spec:
  type: null
  selector: {app: null}
  ports:
  - {name: null, port: null}
  - {observer_schema_list_min_length: 1, observer_schema_list_max_length: 3}
`

// running creates an Application shop in a namespace of its own, and waits until it runs.
func running(t testing.TB) kit.App {
	t.Helper()
	namespace := hub.NewNamespaceOfApps(t, "ui")
	app := hub.CreateApp(t, kit.Application(namespace, "shop", shop, kit.Schema(shopSchema)))
	app.MustBe(t, application.StateRunning)
	return app
}

// scale changes the replicas of the Deployment, as another client.
func scale(t testing.TB, app kit.App, replicas int) {
	t.Helper()
	_, err := hub.Dynamic.Resource(kit.Deployments).Namespace(app.Namespace).Patch(t.Context(), "shop", types.MergePatchType,
		[]byte(fmt.Sprintf(`{"spec": {"replicas": %d}}`, replicas)), metav1.PatchOptions{FieldManager: "kubectl-scale"})
	kit.Must(t, err)
}

// objectPath is the page of an object of the Application.
func objectPath(app kit.App, apiVersion, kind string) string {
	return fmt.Sprintf("/object?namespace=%s&name=shop&apiVersion=%s&kind=%s&objectNamespace=%s&object=shop", app.Namespace, apiVersion, kind, app.Namespace)
}

func applicationPath(app kit.App) string {
	return "/application?namespace=" + app.Namespace + "&name=shop"
}

// line is an expression for the line of the lens with a text.
func line(text string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(".line")].find((line) => line.querySelector(".yaml").textContent.includes(%q))`, text)
}

// The overview shows an Application that is created, changed and deleted, without a reload.
func TestOverviewIsLive(t *testing.T) {
	needBrowser(t)
	app := running(t)
	b := serve(t, "-n", app.Namespace).open(t)
	b.shows(`document.querySelector("#applications tbody").innerText.includes("RUNNING")`)
	check.Equal(t, "Applications", "1 of 1", eval[string](b, `document.querySelector("#count").textContent`))

	other := hub.CreateApp(t, kit.Application(app.Namespace, "broken", "apiVersion: v1\nkind: Nonsense\nmetadata: {name: NAME}\n"))
	b.shows(`document.querySelector("#count").textContent === "2 of 2"`)
	b.do(chromedp.Click(`#filter [name=trouble]`))
	b.shows(`document.querySelector("#count").textContent === "1 of 2"`)
	b.do(chromedp.Click(`#filter [name=trouble]`), chromedp.SendKeys(`#filter [name=text]`, "shop"))
	b.shows(`document.querySelector("#count").textContent === "1 of 2"`)
	b.do(chromedp.SendKeys(`#filter [name=text]`, kb.Backspace+kb.Backspace+kb.Backspace+kb.Backspace))
	first := `document.querySelector("#applications tbody th").textContent`
	b.shows(first + fmt.Sprintf(" === %q", app.Namespace+"/broken"))
	b.do(chromedp.Click(`#applications thead button`))
	b.shows(first + fmt.Sprintf(" === %q", app.Namespace+"/shop"))
	other.Delete(t)
	b.shows(`document.querySelector("#count").textContent === "1 of 1"`)

	// So is a repair, in the ticker.
	scale(t, app, 5)
	b.shows(`document.querySelector("#repairs").innerText.includes("spec.replicas: 2 -> 5, by kubectl-scale, reverted in")`)
}

func TestApplicationShowsObjectsConditionsAndTimeline(t *testing.T) {
	needBrowser(t)
	app := running(t)
	scale(t, app, 5)
	kit.Eventually(t, func() string {
		if read := app.Read(t); len(read.Status.Drifts) == 0 {
			return "the status has no drift"
		}
		return ""
	})
	b := serve(t, "-n", app.Namespace).open(t)
	b.visit(applicationPath(app))
	for _, text := range []string{"Deployment/shop", "Service/shop", "Reconciled", "kubectl-scale"} {
		b.shows(fmt.Sprintf(`document.querySelector("main").innerText.includes(%q)`, text))
	}
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector(".timeline a rect").parentElement.dispatchEvent(new MouseEvent("click", { bubbles: true }))`))
	b.shows(`location.hash === "#drift-0" && document.querySelector(":target dl").innerText.includes("spec.replicas: desired 2, found 5")`)
	b.do(chromedp.Evaluate[chromedp.Void](`[...document.querySelectorAll(".zoom a")].find((a) => a.textContent === "7d").click()`))
	b.shows(`document.querySelector('.zoom [aria-current]')?.textContent === "7d"`)

	// It is live: a hold appears.
	until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	hub.Kubectl(t, "annotate", "--namespace", app.Namespace, "deployment/shop", "krake.dev/hold-until="+until)
	b.shows(`document.querySelector(".timeline rect.hold") !== null`)
}

// Each field has its look, and a click says why.
func TestLensShowsEachField(t *testing.T) {
	needBrowser(t)
	app := running(t)
	b := serve(t, "-n", app.Namespace).open(t)
	b.visit(objectPath(app, "v1", "Service"))
	for text, look := range map[string]string{"type: ClusterIP": "pinned", "port: 80": "ok", "sessionAffinity: None": "unobserved"} {
		b.shows(line(text) + fmt.Sprintf(`.classList.contains(%q)`, look))
	}
	b.shows(line("ports:") + `.innerText.includes("from 1 to 3 elements; found by")`)
	b.do(chromedp.Evaluate[chromedp.Void](line("type: ClusterIP") + `.querySelector(".yaml").click()`))
	b.shows(`document.querySelector("#why").innerText.includes("its value was learned from the cluster, and is pinned")`)
	b.do(chromedp.Evaluate[chromedp.Void](line("sessionAffinity: None") + `.querySelector(".yaml").click()`))
	b.shows(`document.querySelector("#why").innerText.includes("the observer schema does not name it (line 4 of")`)

	// A drift that is held is shown with the desired value, and who has set the other.
	b.visit(objectPath(app, "apps/v1", "Deployment"))
	hub.Kubectl(t, "annotate", "--namespace", app.Namespace, "deployment/shop", "krake.dev/hold-until="+time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	scale(t, app, 7)
	b.shows(line("replicas: 7") + `?.classList.contains("drifting")`)
	check.Equal(t, "desired", "→ 2", eval[string](b, line("replicas: 7")+`.querySelector("ins").textContent`))
	b.shows(line("replicas: 7") + `.querySelector(".who").innerText.startsWith("kubectl-scale")`)
}

// Values that may be secrets are hidden until the user asks for those of one object.
func TestPrivateValuesAreHidden(t *testing.T) {
	needBrowser(t)
	app := running(t)
	b := serve(t, "-n", app.Namespace).open(t)
	b.visit(objectPath(app, "apps/v1", "Deployment"))
	if eval[bool](b, `document.documentElement.outerHTML.includes("hush-hush")`) {
		t.Error("the page has a value that may be a secret")
	}
	b.do(chromedp.Click(`a.action`))
	b.shows(`document.documentElement.outerHTML.includes("hush-hush")`)
	b.visit(objectPath(app, "v1", "Service"))
	b.visit(objectPath(app, "apps/v1", "Deployment"))
	if eval[bool](b, `document.documentElement.outerHTML.includes("hush-hush")`) {
		t.Error("the next page has it, too")
	}
}

// The schema that toggling makes is admitted, and observes exactly the chosen fields. The command that
// the page shows writes it.
func TestToggledSchemaIsAdmitted(t *testing.T) {
	needBrowser(t)
	app := running(t)
	b := serve(t, "-n", app.Namespace).open(t)
	b.visit(objectPath(app, "v1", "Service"))
	before := eval[[]string](b, observedFields)
	for _, text := range []string{"sessionAffinity: None", "type: ClusterIP", "protocol: TCP"} {
		b.do(chromedp.Evaluate[chromedp.Void](line(text) + `.querySelector("input").click()`))
	}
	want := eval[[]string](b, observedFields)
	if slices.Equal(before, want) {
		t.Fatal("nothing was toggled")
	}
	b.shows(`document.querySelector("#schema-text")?.textContent.includes("sessionAffinity: null")`)
	b.shows(`!document.querySelector("#schema-text").textContent.includes("type: null")`)
	b.shows(`document.querySelector("#schema-text").textContent.includes("protocol: null")`)
	if said := eval[string](b, `document.querySelector("#schema .said")?.innerText ?? ""`); said != "" {
		t.Errorf("admission says %q", said)
	}
	stored := app.Stored(t).Data[application.ObserverSchemaKey]
	command := eval[string](b, `document.querySelector("#schema-command").textContent`)
	runs(t, command)
	kit.Eventually(t, func() string {
		if app.Stored(t).Data[application.ObserverSchemaKey] == stored {
			return "the command has written nothing"
		}
		return app.Is(t, application.StateRunning)
	})
	// The open page follows: the fields stay checked, and nothing is left to be written.
	b.shows(`[...document.querySelectorAll("input.toggle")].every((box) => box.checked === box.defaultChecked)`)
	check.Equal(t, "observed fields of the open page", strings.Join(want, "\n"), strings.Join(eval[[]string](b, observedFields), "\n"))
	b.visit(objectPath(app, "v1", "Service"))
	check.Equal(t, "observed fields", strings.Join(want, "\n"), strings.Join(eval[[]string](b, observedFields), "\n"))
}

// A read that fails for now leaves what the user has chosen, and is repeated.
func TestAFailedReadKeepsTheChoices(t *testing.T) {
	needBrowser(t)
	app := running(t)
	b := serve(t, "-n", app.Namespace).open(t)
	b.visit(objectPath(app, "v1", "Service"))
	b.do(chromedp.Evaluate[chromedp.Void](line("sessionAffinity: None") + `.querySelector("input").click()`))
	b.shows(`document.querySelector("#schema-text")?.textContent.includes("sessionAffinity: null")`)
	b.do(chromedp.Evaluate[chromedp.Void](`{
		const real = window.fetch;
		window.fetch = () => {
			window.fetch = real;
			return Promise.resolve(new Response('<p role="alert">too many requests</p>', { status: 429, headers: { "Content-Type": "text/html" } }));
		};
		document.dispatchEvent(new Event("visibilitychange"));
	}`))
	b.shows(`document.querySelector("#problem").textContent === "Not up to date: too many requests"`)
	for _, when := range []string{"after the failure", "after the next read"} {
		check.Equal(t, when, true, eval[bool](b, line("sessionAffinity: None")+`.querySelector("input").checked`))
		b.shows(`document.querySelector("#schema-text").textContent.includes("sessionAffinity: null")`)
		b.shows(`document.querySelector("#problem").textContent === ""`)
	}
}

const observedFields = `[...document.querySelectorAll("input.toggle")].filter((box) => box.checked).map((box) => (box.dataset.length ?? 0) + ":" + box.closest(".line").querySelector("button").dataset.place)`

// runs runs a command of the page in a shell.
func runs(t *testing.T, command string) {
	t.Helper()
	folder := t.TempDir()
	kit.Must(t, os.Symlink(hub.Cluster.Kubectl(), folder+"/kubectl"))
	shell := exec.CommandContext(t.Context(), "sh", "-c", command)
	shell.Env = append(os.Environ(), "KUBECONFIG=/nowhere", "PATH="+folder+":"+os.Getenv("PATH"))
	if out, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%s\n%s: %v", command, out, err)
	}
}

func TestBeforeYouApplyShowsWhatWouldHappen(t *testing.T) {
	needBrowser(t)
	app := running(t)
	b := serve(t, "-n", app.Namespace).open(t)
	b.visit("/before")
	changed := strings.ReplaceAll(strings.Replace(shop, "shop:1.27", "shop:1.28", 1), "NAME", "shop") + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n"
	b.do(chromedp.SetValue(`#name`, "shop"), chromedp.SetValue(`#manifest`, changed), chromedp.Click(`#before button`), chromedp.WaitVisible(`pre.diff`))
	b.shows(`document.querySelector("main").innerText.includes("registry.example/shop:1.28")`)
	b.shows(`document.querySelector("main").innerText.includes("would be created")`)
	b.do(chromedp.Evaluate[chromedp.Void](`document.dispatchEvent(new Event("visibilitychange"))`)) // as after a look at another tab
	check.Equal(t, "the text is kept", changed, eval[string](b, `document.querySelector("#manifest").value`))
	if got := kit.At(hub.Get(t, kit.Deployments, app.Namespace, "shop").Object, "spec", "template", "spec", "containers", 0, "image"); got != "registry.example/shop:1.27" {
		t.Errorf("the image is %v: something was written", got)
	}
	b.visit("/before")
	b.do(chromedp.Evaluate[chromedp.Void](`{
		const data = new DataTransfer();
		data.items.add(new File(["apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: 7}\n"], "draft.yaml"));
		document.querySelector("#manifest").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
	}`))
	b.shows(`document.querySelector("[role=alert]")?.innerText.includes("mend this mistake")`)
	check.Equal(t, "the name of the file", "draft", eval[string](b, `document.querySelector("#name").value`))
}

// The keyboard alone is enough to explain a field and to toggle it.
func TestLensWorksByKeyboard(t *testing.T) {
	needBrowser(t)
	app := running(t)
	b := serve(t, "-n", app.Namespace).open(t)
	b.visit(objectPath(app, "v1", "Service"))
	b.do(chromedp.Focus(`.lens button.yaml`))
	for range 60 {
		if eval[bool](b, `document.activeElement.textContent.includes("sessionAffinity")`) {
			break
		}
		b.do(chromedp.KeyEvent(kb.ArrowDown))
	}
	b.do(chromedp.KeyEvent(kb.Enter))
	b.shows(`document.querySelector("#why").innerText.includes("sessionAffinity")`)
	b.do(chromedp.KeyEvent(" "))
	b.shows(`document.querySelector("#schema-text")?.textContent.includes("sessionAffinity: null")`)
	check.Equal(t, "tab stops in the lens", 1.0, eval[float64](b, `[...document.querySelectorAll(".lens *")].filter((element) => element.tabIndex >= 0).length`))
}
