package ui

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
)

// What all tests share.
var (
	hub       *kit.Plane
	installed *installation.Installation
	// plugin is the path of kubectl-krake, kubeconfig that of an administrator.
	plugin, kubeconfig string
	// browserPath is empty if there is no browser.
	browserPath string
)

func TestMain(m *testing.M) {
	kit.Suite{
		Name: "ui",
		Start: func(ctx context.Context) (err error) {
			browserPath = findBrowser()
			if browserPath == "" {
				fmt.Fprintln(os.Stderr, "ui: THERE IS NO BROWSER: no test in a browser is run: install chromium, or name one by KRAKE_BROWSER")
			}
			if hub, err = kit.StartPlane(ctx, cluster.Options{PretendKubelet: true}); err != nil {
				return err
			}
			kubeconfig = hub.Kubeconfig()
			installed, err = installation.Install(ctx, hub.Cluster, os.Stderr)
			plugin = filepath.Join(hub.Dir(), "installation", "kubectl-krake")
			return err
		},
		Logs: func() []string { return installed.Logs() },
		Stop: func() error { return hub.Stop() },
	}.Main(m)
}

func findBrowser() string {
	if path := os.Getenv("KRAKE_BROWSER"); path != "" {
		return path
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// needBrowser skips a test if there is no browser, and one is not required.
func needBrowser(t testing.TB) {
	t.Helper()
	switch {
	case browserPath != "":
	case os.Getenv("KRAKE_BROWSER_REQUIRED") != "":
		t.Fatal("there is no browser, and KRAKE_BROWSER_REQUIRED is set")
	default:
		t.Skip("there is no browser: install chromium, or name one by KRAKE_BROWSER")
	}
}

// served is a running kubectl krake ui.
type served struct {
	link, origin string
	process      *os.Process
}

var linkPattern = regexp.MustCompile(`The page is at ((http://127\.0\.0\.1:\d+)/\?token=\S+)`)

// serve starts kubectl krake ui until the test is over.
func serve(t testing.TB, arguments ...string) served {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	command := exec.CommandContext(ctx, plugin, append([]string{"ui", "--no-browser", "--kubeconfig", kubeconfig}, arguments...)...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	kit.Must(t, err)
	kit.Must(t, command.Start())
	t.Cleanup(func() {
		stop()
		_ = command.Wait() // it was interrupted
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if found := linkPattern.FindStringSubmatch(lines.Text()); found != nil {
			go func() {
				for lines.Scan() { // so that it is never blocked
				}
			}()
			return served{found[1], found[2], command.Process}
		}
	}
	t.Fatalf("kubectl krake ui has ended without a link: %v", lines.Err())
	return served{}
}

// tab is a tab of a browser.
type tab struct {
	context.Context

	t        testing.TB
	page     served
	failures *failures
}

// open opens the page in a browser of its own. The test fails if its console has an error.
func (s served) open(t testing.TB) tab { return s.openWith(t) }

// openWith is open with further flags of the browser.
func (s served) openWith(t testing.TB, flags ...chromedp.ExecAllocatorOption) tab {
	t.Helper()
	needBrowser(t)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(browserPath), chromedp.NoSandbox, chromedp.WindowSize(1400, 1000))
	options = append(options, flags...)
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	found := new(failures)
	tab := tab{ctx, t, s, found}
	kit.Must(t, chromedp.Do(ctx, chromedp.Navigate("about:blank"))) // the browser lives as long as this context
	console, requests := chromedp.Console(ctx), chromedp.Events(ctx, network.RequestWillBeSent)
	go func() {
		for message, err := range console {
			if err == nil && (message.Type == chromedp.ConsoleError || message.IsException()) {
				found.add(message.String())
			}
		}
	}()
	go func() {
		for event, err := range requests {
			if err == nil {
				found.request(event.Request)
			}
		}
	}()
	tab.do(chromedp.Navigate(s.link), chromedp.WaitVisible("main"))
	t.Cleanup(func() {
		if said := found.unaccepted(); len(said) > 0 {
			t.Errorf("the browser complains: %q", said)
		}
	})
	return tab
}

// another opens a path in a further tab of the same browser.
func (s served) another(t testing.TB, first tab, path string) tab {
	t.Helper()
	ctx, stop := chromedp.NewContext(first.Context)
	t.Cleanup(stop)
	kit.Must(t, chromedp.Do(ctx, chromedp.Navigate(s.origin+path)))
	return tab{ctx, t, s, new(failures)}
}

// do runs actions of the browser, within the time that tests wait.
func (b tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.Context, patience)
	defer stop()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatalf("%v; the page has\n%s", err, eval[string](b, whole))
	}
}

// eval evaluates an expression in the page.
func eval[T any](b tab, expression string) T {
	b.t.Helper()
	value, err := evaluate[T](b, expression)
	kit.Must(b.t, err)
	return value
}

// evaluate is eval for a page that may be left meanwhile.
func evaluate[T any](b tab, expression string) (T, error) {
	ctx, stop := context.WithTimeout(b.Context, patience)
	defer stop()
	return chromedp.Run(ctx, chromedp.Evaluate[T](expression))
}

// whole is the text of a page, for a message. A page that has just begun has no body.
const whole = `(document.body?.innerText.slice(0, 3000) ?? "nothing")`

// shows waits until the page is read and an expression in it is true. While the browser leaves a page for the next, the
// document may be empty, and an evaluation may fail: neither ends the test.
func (b tab) shows(expression string) {
	b.t.Helper()
	look := `(() => { try { if (document.readyState !== "loading" && (` + expression + `)) return null } catch {} return ` + whole + ` })()`
	kit.EventuallyWithin(b.t, patience, func() string {
		found, err := evaluate[*string](b, look)
		switch {
		case err != nil:
			return fmt.Sprintf("%s: %v", expression, err)
		case found != nil:
			return fmt.Sprintf("%s is false; the page has\n%s", expression, *found)
		}
		return ""
	})
}

// visit opens a path of the page.
func (b tab) visit(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.page.origin+path), chromedp.WaitVisible("main"))
}

// patience is how long a page may take: nothing on it waits for more than a write to the API server.
const patience = 30 * time.Second
