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
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// While nothing changes, an open page costs the API server watches only.
func TestAnIdlePageOnlyWatches(t *testing.T) {
	needBrowser(t)
	const user, window = "uma", 40 * time.Second
	app := running(t)
	start := hub.Mark(t)
	s := serve(t, "-n", app.Namespace, "--as", user, "--as-group", "system:masters")
	object := s.another(t, s.open(t), objectPath(app, "apps/v1", "Deployment"))
	object.shows(`document.querySelector(".lens")`)
	time.Sleep(2 * time.Second) // what the pages need at first
	asUser := func(r kit.Request) bool { return r.As.Username == user }
	if len(start.Requests(t, asUser)) == 0 {
		t.Fatal("the audit log has no request of the page")
	}
	begin := hub.Mark(t)
	time.Sleep(window)
	requests := begin.Requests(t, asUser)
	for _, r := range requests {
		if r.Verb != "watch" {
			t.Errorf("an idle page requests %s %s", r.Verb, r.URI)
		}
	}
	t.Logf("%d requests in %s, with two pages open", len(requests), window)
}

// A thousand Applications: how long the page takes, what it holds in memory, and what it sends.
func TestAThousandApplications(t *testing.T) {
	needBrowser(t)
	kit.Long(t, "a thousand Applications are made")
	const many = 1000
	namespace := hub.NewNamespaceOfApps(t, "many")
	var group errgroup.Group
	group.SetLimit(16)
	for i := range many {
		group.Go(func() error {
			// No agent has this cluster, so that only the page has to do with them.
			cm := kit.Application(namespace, fmt.Sprintf("app-%04d", i), shop, kit.On("elsewhere"))
			_, err := hub.CoreV1().ConfigMaps(namespace).Create(t.Context(), cm, metav1.CreateOptions{})
			return err
		})
	}
	kit.Must(t, group.Wait())
	s := serve(t, "-n", namespace)
	b := s.open(t)
	b.shows(fmt.Sprintf(`document.querySelector("#count").textContent === "%d of %d"`, many, many))
	started := time.Now()
	b.visit("/")
	b.shows(fmt.Sprintf(`document.querySelector("#count").textContent === "%d of %d"`, many, many))
	t.Logf("a reload takes %s; memory of the program %s", time.Since(started).Round(time.Millisecond), memoryOf(t, s.process.Pid))
	t.Logf("navigation: %s", eval[string](b, timing))
	t.Logf("memory of the page: %.1f MiB of JavaScript, %v nodes", eval[float64](b, `performance.memory.usedJSHeapSize / 2 ** 20`), eval[float64](b, `document.querySelectorAll("*").length`))

	// Typing in the filter, and sorting: no frame takes long.
	for name, action := range map[string]string{
		"filter": `document.querySelector("#filter [name=text]").value = "app-05"; document.querySelector("#filter [name=text]").dispatchEvent(new InputEvent("input", { bubbles: true }))`,
		"sort":   `document.querySelectorAll("#applications .sort")[0].click()`,
		"scroll": `window.scrollTo(0, 5000)`,
	} {
		took := framesOf(b, action)
		t.Logf("%s: %.0f ms until it is drawn", name, took)
	}
	b.visit("/") // without a filter
	hub.App(namespace, "app-0999").Delete(t)
	b.shows(`document.querySelector("#count").textContent === "999 of 999"`)
}

// timing has the milliseconds from the request of a page until its first byte, its end, and its load.
const timing = `(() => {
	const [n] = performance.getEntriesByType("navigation");
	return "first byte " + Math.round(n.responseStart) + " ms, end of " + Math.round(n.encodedBodySize / 1024) + " KiB " + Math.round(n.responseEnd) +
		" ms, interactive " + Math.round(n.domInteractive) + " ms, loaded " + Math.round(n.loadEventEnd) + " ms";
})()`

// framesOf returns the milliseconds from an action until the second frame after it.
func framesOf(b tab, action string) float64 {
	b.do(chromedp.Evaluate[chromedp.Void](`window.drawn = undefined; { const start = performance.now(); ` + action + `;
		requestAnimationFrame(() => requestAnimationFrame(() => window.drawn = performance.now() - start)); }`))
	b.shows(`window.drawn`)
	return eval[float64](b, `window.drawn`)
}

// An object of 2,000 lines. The times are for the documentation: what is checked does not depend on the machine.
func TestALargeObjectHasASmallPage(t *testing.T) {
	needBrowser(t)
	const mostBytes, mostNodes = 400.0, 6.0 // for each line
	namespace := hub.NewNamespaceOfApps(t, "large")
	var variables strings.Builder
	for i := range 950 {
		fmt.Fprintf(&variables, "\n        - {name: VARIABLE_%d, value: \"%d\"}", i, i)
	}
	deployment, _, _ := strings.Cut(shop, "---")
	app := hub.CreateApp(t, kit.Application(namespace, "shop", strings.Replace(deployment, " [{name: LEVEL, value: hush-hush}]", variables.String(), 1)))
	app.MustSettle(t, application.LocalCluster)
	b := serve(t, "-n", namespace).open(t)
	var all []float64
	for range 7 {
		b.visit(objectPath(app, "apps/v1", "Deployment"))
		b.shows(`document.querySelectorAll(".line").length > 1900`)
		all = append(all, eval[float64](b, `performance.getEntriesByType("navigation")[0].loadEventEnd`))
	}
	lines := eval[float64](b, `document.querySelectorAll(".line").length`)
	nodes := eval[float64](b, `document.querySelectorAll(".lens *").length`) / lines
	bytes := eval[float64](b, `performance.getEntriesByType("navigation")[0].encodedBodySize`) / lines
	t.Logf("%v lines, each with %.0f bytes and %.1f nodes: loaded after %.0f ms; the last: %s; JavaScript %.1f MiB",
		lines, bytes, nodes, all, eval[string](b, timing), eval[float64](b, `performance.memory.usedJSHeapSize / 2 ** 20`))
	if bytes > mostBytes || nodes > mostNodes {
		t.Errorf("each line has %.0f bytes and %.1f nodes, want %v and %v at most", bytes, nodes, mostBytes, mostNodes)
	}
}

// From the start of the command to the Applications in a browser that runs. The limit is ten times what a
// machine without other work needs.
func TestThePageIsThereAtOnce(t *testing.T) {
	needBrowser(t)
	const most = 3 * time.Second
	app := running(t)
	b := serve(t, "-n", app.Namespace).open(t) // warm: the files are in memory
	var all []time.Duration
	for range 5 {
		b.do(chromedp.Navigate("about:blank"))
		started := time.Now()
		s := serve(t, "-n", app.Namespace)
		link := time.Since(started)
		b.do(chromedp.Navigate(s.link))
		b.shows(`document.querySelector("#applications tbody").innerText.includes("RUNNING")`)
		all = append(all, time.Since(started))
		t.Logf("link after %s, page after %s; %s", link.Round(time.Millisecond), all[len(all)-1].Round(time.Millisecond), eval[string](b, timing))
		b.do(chromedp.Navigate("about:blank"))
	}
	if best := slices.Min(all); best > most {
		t.Errorf("%s from the start to the page at best, want %s at most", best, most)
	}
}

// memoryOf returns the resident memory of a process, as the kernel writes it.
func memoryOf(t testing.TB, pid int) string {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	kit.Must(t, err)
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// The command ends with Ctrl-C.
func TestItEndsWithAnInterrupt(t *testing.T) {
	s := serve(t, "-n", "default")
	kit.Must(t, s.process.Signal(os.Interrupt))
	kit.Eventually(t, func() string {
		if exec.CommandContext(t.Context(), "kill", "-0", fmt.Sprint(s.process.Pid)).Run() == nil && !isZombie(s.process.Pid) {
			return "it still runs"
		}
		return ""
	})
}

func isZombie(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(status), ") Z ")
}
