package ui

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// view is a page that is looked at.
type view struct {
	name string
	// open opens it, and waits until it is complete.
	open func(b tab)
}

// views are all pages of an installation in which something has happened: Applications of several states, a
// drift that was reverted, one that is held, and a chosen field.
func views(app kit.App) []view {
	return []view{
		{"overview", func(b tab) {
			b.visit("/")
			b.shows(`document.querySelectorAll("#applications tbody tr").length >= 4`)
		}},
		{"application", func(b tab) {
			b.visit(applicationPath(app))
			b.shows(`document.querySelector(".timeline rect.hold")`)
		}},
		{"lens", func(b tab) {
			b.visit(objectPath(app, "apps/v1", "Deployment"))
			b.shows(line("replicas: 7") + `.classList.contains("drifting")`)
			b.do(chromedp.Evaluate[chromedp.Void](line("revisionHistoryLimit")+`.querySelector("input").click()`), chromedp.Evaluate[chromedp.Void](line("replicas: 7")+`.querySelector("button").click()`))
			b.shows(`document.querySelector("#schema-text") && document.querySelector("#why code")`)
		}},
		{"before", func(b tab) {
			b.visit("/before")
			b.do(chromedp.SetValue(`#name`, "shop"), chromedp.SetValue(`#manifest`, upgraded), chromedp.Click(`#before button`), chromedp.WaitVisible(`pre.diff`))
		}},
	}
}

const upgraded = `apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers:
      - name: web
        image: registry.example/shop:1.28
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {level: info}
`

// busy makes an installation in which something has happened, in the namespace "demo" of the pictures.
func busy(t testing.TB) kit.App {
	t.Helper()
	if _, err := hub.CoreV1().Namespaces().Get(t.Context(), "demo", metav1.GetOptions{}); err == nil {
		hub.Kubectl(t, "delete", "namespace", "demo")
	}
	hub.CreateNamespace(t, "demo")
	app := hub.CreateApp(t, kit.Application("demo", "shop", shop, kit.Schema(shopSchema)))
	app.MustBe(t, application.StateRunning)
	for _, more := range []struct{ name, manifest string }{
		{"broken", "apiVersion: v1\nkind: Nonsense\nmetadata: {name: NAME}\n"},
		{"settings", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME-data}\ndata: {level: info}\n"},
		{"worker", kit.WebManifest},
	} {
		hub.CreateApp(t, kit.Application(app.Namespace, more.name, more.manifest))
	}
	hub.App(app.Namespace, "worker").MustBe(t, application.StateRunning)
	for i := range 3 {
		scale(t, app, 5+i)
		time.Sleep(time.Second) // the three drifts are at different times
	}
	hub.Kubectl(t, "set", "image", "--namespace", app.Namespace, "deployment/shop", "web=registry.example/shop:wrong")
	time.Sleep(time.Second)
	until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	hub.Kubectl(t, "annotate", "--namespace", app.Namespace, "deployment/shop", "krake.dev/hold-until="+until)
	kit.Eventually(t, func() string {
		if read := app.Read(t); len(read.Status.Objects) == 0 || read.Status.Objects[0].Hold == nil {
			return "the hold is not in the status"
		}
		return ""
	})
	scale(t, app, 7)
	return app
}

// TestPictures writes a picture of each view to the folder of KRAKE_PICTURES: light and dark, wide and
// narrow. No page is wider than its window.
func TestPictures(t *testing.T) {
	needBrowser(t)
	folder := os.Getenv("KRAKE_PICTURES")
	if folder == "" {
		folder = t.TempDir()
	}
	app := busy(t)
	b := serve(t, "-n", app.Namespace).open(t)
	for _, colours := range []string{"light", "dark"} {
		for size, width := range map[string]int64{"wide": 1400, "narrow": 420} {
			b.do(chromedp.EmulateViewport(width, 900), prefer(colours))
			for _, v := range views(app) {
				v.open(b)
				path := filepath.Join(folder, fmt.Sprintf("%s-%s-%s.png", v.name, colours, size))
				ctx, stop := context.WithTimeout(b.Context, patience)
				picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
				stop()
				kit.Must(t, err)
				kit.Must(t, os.WriteFile(path, picture, 0o600))
				if over := eval[float64](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
					t.Errorf("%s: the page is %v pixels wider than the window", filepath.Base(path), over)
				}
			}
		}
	}
}

func prefer(colours string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: colours}},
		})
		return err
	})
}
