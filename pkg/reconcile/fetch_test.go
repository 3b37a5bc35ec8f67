package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/reconcile"
	"github.com/krake-observer/krake-observer/test/check"
)

const sourceURL = "https://example.org/web/service.yaml"

// library holds the manifests behind URLs.
type library struct {
	texts map[string]string
	// fails is the error of each fetch, or nil.
	fails   error
	fetched []string
}

func (l *library) Translate(_ context.Context, source application.Source) ([]any, error) {
	l.fetched = append(l.fetched, source.URL)
	if l.fails != nil {
		return nil, l.fails
	}
	return manifest.Decode([]byte(l.texts[source.URL]))
}

func (l *library) checkFetched(t *testing.T, want ...string) {
	t.Helper()
	check.Equal(t, "fetched", want, l.fetched)
	l.fetched = nil
}

// unfetched returns an Application with a URL source that is not fetched yet. Its agent may
// fetch.
func unfetched(t *testing.T) (*world, *library) {
	t.Helper()
	w, l := newWorld(t, oneObject, ""), &library{texts: map[string]string{sourceURL: twoObjects}}
	w.Sources, w.RequireAccount = l, true
	w.point(t, sourceURL)
	return w, l
}

// point sets the URL of the Application's source.
func (w *world) point(t *testing.T, url string) {
	t.Helper()
	w.edit(t, func(cm *corev1.ConfigMap) {
		delete(cm.Data, application.ManifestKey)
		delete(cm.Data, application.ObserverSchemaKey)
		cm.Data[application.ToscaKey] = url
	})
}

// fetchedRunning returns a fetched Application that is reconciled.
func fetchedRunning(t *testing.T) (*world, *library) {
	t.Helper()
	w, l := unfetched(t)
	w.mustPass(t)
	w.checkReady(t, application.StateRunning, "Ready", ready)
	l.checkFetched(t, sourceURL)
	return w, l
}

// A URL source is fetched once, and the result is stored. No later agent fetches it again. Another URL
// is another spec, and replaces the former result.
func TestFetch(t *testing.T) {
	w, l := fetchedRunning(t)
	w.checkTouches(t, "Create ConfigMap config", "Create Deployment web")
	for _, key := range []string{application.TranslatedKey, application.MangledSchemaKey, application.LastAppliedKey} {
		check.Equal(t, key+" has the Deployment", true, strings.Contains(w.cm.Data[key], `"name":"web"`))
	}
	w.checkQuiet(t)
	w.checkSilentRestart(t)
	l.checkFetched(t)

	w.passWith(t, application.ModeAnnotation, "suspend")
	check.Equal(t, "what was fetched is kept", true, w.cm.Data[application.MangledSchemaKey] != "" && w.cm.Data[application.TranslatedKey] != "")
	w.passWith(t, application.ModeAnnotation, "enforce")
	w.edit(t, func(cm *corev1.ConfigMap) {
		cm.Data[application.ObserverSchemaKey] = "{apiVersion: v1, kind: ConfigMap, metadata: {name: config}}"
	})
	w.mustPass(t)
	l.checkFetched(t) // the schema does not matter for the source

	const other = "https://example.org/other.yaml"
	l.texts[other] = oneObject
	w.point(t, other)
	check.Equal(t, "translation of the other URL", "", w.cm.Data[application.TranslatedKey])
	w.mustPass(t)
	l.checkFetched(t, other)
	w.checkObjects(t, 1)
	w.checkQuiet(t)
}

// A forged result is not taken for a fetched one.
func TestForgedTranslation(t *testing.T) {
	w, l := fetchedRunning(t)
	w.cm.Data[application.TranslatedKey] = `[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"forged"}}]`
	w.cm.ResourceVersion = w.next()
	w.restart()
	w.mustPass(t)
	l.checkFetched(t, sourceURL)
	w.checkTouches(t)
	check.Equal(t, "the forged translation is there still", false, strings.Contains(w.cm.Data[application.TranslatedKey], "forged"))
}

// While a fetch fails, the objects stay, and it is tried again with growing delays. Nothing is
// written meanwhile.
func TestFetchThatFails(t *testing.T) {
	w := running(t, oneObject, "")
	former := w.app(t).Status.ObservedSpec
	l := &library{texts: map[string]string{sourceURL: twoObjects}, fails: fmt.Errorf("fetch it: %w", syscall.ECONNREFUSED)}
	w.Sources, w.RequireAccount = l, true
	w.point(t, sourceURL)
	w.checkAfter(t, w.step, 10*time.Second)
	w.checkTouches(t)
	w.checkReady(t, application.StateTranslating, "FetchFailed", "fetch it: connection refused")
	w.checkReason(t, application.StalledCondition, "Progressing")
	check.Equal(t, "spec of the status", former, w.app(t).Status.ObservedSpec)
	w.checkSilent(t, 3)
	w.checkObjects(t, 1)
	l.fetched = nil
	w.step = time.Second
	for range 3600 {
		w.mustPass(t)
		if len(w.writes()) > 0 {
			t.Fatalf("writes: %v", w.writes())
		}
	}
	checkRange(t, "tries in an hour", 8, 12, len(l.fetched))
	l.fails = nil
	w.step = 10 * time.Minute
	w.mustPass(t)
	w.checkReady(t, application.StateRunning, "Ready", ready)
	w.checkObjects(t, 2)
}

// An illegal template is reported in the words of Krake. Only a change of the URL or
// of its content helps.
func TestFetchOfWhatIsNotLegal(t *testing.T) {
	cases := []struct {
		name, text string
		fails      error
		reason     string
		message    string
	}{
		{"a template that is none", "", fmt.Errorf("%w: line 3: no", reconcile.ErrTranslation), "InvalidToscaManifest", "it cannot be translated: line 3: no"},
		{"a template that is not taken", "", fmt.Errorf("%w: another digest", reconcile.ErrSource), "Refused", "it is not taken: another digest"},
		{"a template of resources that are none", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: 1}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", nil, "Refused", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w, l := unfetched(t)
			l.texts[sourceURL], l.fails = c.text, c.fails
			w.checkPass(t)
			w.checkReason(t, application.ReadyCondition, c.reason)
			w.checkReason(t, application.StalledCondition, c.reason)
			w.checkState(t, application.StateFailed)
			if c.message != "" {
				w.checkCondition(t, application.ReconciledCondition, c.reason, c.message)
			}
			w.checkSilent(t, 3)
			l.checkFetched(t, sourceURL)
		})
	}
}

// A template that was never admitted is also refused in the words of Krake.
func TestTemplateThatIsNotLegal(t *testing.T) {
	w := newWorld(t, oneObject, "")
	delete(w.cm.Data, application.ManifestKey)
	w.cm.Data[application.ToscaKey] = "tosca_definitions_version: tosca_simple_yaml_9_9"
	w.checkPass(t)
	w.checkReason(t, application.ReadyCondition, "InvalidToscaManifest")
	w.checkReason(t, application.StalledCondition, "InvalidToscaManifest")
	w.checkState(t, application.StateFailed)
}

// An agent fetches only if an administrator allows it, and never carries out a result as the
// agent itself.
func TestFetchThatIsOff(t *testing.T) {
	cases := []struct {
		name    string
		set     func(t *testing.T, w *world)
		refused bool
	}{
		{"nothing is fetched", func(_ *testing.T, w *world) { w.Sources = nil }, true},
		{"the agent acts itself", func(_ *testing.T, w *world) { w.RequireAccount = false }, true},
		{"nothing is fetched any more", func(t *testing.T, w *world) {
			w.mustPass(t)
			w.restart()
			w.Sources = nil
		}, false},
		{"the agent acts itself by now", func(t *testing.T, w *world) {
			w.mustPass(t)
			w.restart()
			w.RequireAccount = false
		}, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w, _ := unfetched(t)
			c.set(t, w)
			w.checkPass(t)
			if !c.refused {
				w.checkReady(t, application.StateRunning, "Ready", ready)
				return
			}
			w.checkReason(t, application.ReadyCondition, "Refused")
			w.checkReason(t, application.StalledCondition, "Refused")
		})
	}
}

// An agent on another cluster fetches again. Until it succeeds, the documents and the objects
// stay those of the former cluster.
func TestFetchOnAnotherCluster(t *testing.T) {
	w, l := fetchedRunning(t)
	here, there := w.objects, map[string]map[string]any{}
	before := w.documents(t)
	check.Equal(t, "cluster of the documents", application.LocalCluster, before[2])
	w.travel(t, "edge")
	w.visit("edge", there)
	l.fails = &net.OpError{Op: "dial", Err: errors.New("no")}
	w.mustPass(t)
	w.checkReason(t, application.ReadyCondition, "FetchFailed")
	check.Equal(t, "documents", before, w.documents(t))
	w.Sources = nil
	w.mustPass(t)
	check.Equal(t, "documents", before, w.documents(t))
	w.visit(application.LocalCluster, here)
	w.mustPass(t)
	check.Equal(t, "objects here", 2, len(here))
	w.visit("edge", there)
	w.Sources, l.fails, l.fetched = l, nil, nil
	w.mustPass(t)
	l.checkFetched(t, sourceURL)
	w.visit(application.LocalCluster, here)
	w.mustPass(t)
	l.checkFetched(t)
	check.Equal(t, "objects here and there", []int{0, 2}, []int{len(here), len(there)})
}
