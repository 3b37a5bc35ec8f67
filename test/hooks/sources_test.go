package hooks

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
)

// templates is a server of templates and archives, which counts its requests.
type templates struct {
	*httptest.Server

	mu    sync.Mutex
	files map[string][]byte
	asked map[string]int
}

func newTemplates() *templates {
	s := &templates{files: map[string][]byte{}, asked: map[string]int{}}
	s.Server = httptest.NewTLSServer(s)
	return s
}

func (s *templates) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[r.URL.Path]++
	file, ok := s.files[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(file) // a client that has gone needs no answer
}

func (s *templates) put(path string, file []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[path] = file
}

func (s *templates) count(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[path]
}

// strictWorld is a cluster for one test, in strict mode and with URL sources.
type strictWorld struct {
	plane        *kit.Plane
	installation *installation.Installation
	namespace    string
}

func newStrictWorld(t *testing.T, from *templates) *strictWorld {
	t.Helper()
	c, err := kit.StartPlane(t.Context(), cluster.Options{})
	kit.Must(t, err)
	t.Cleanup(func() { kit.Must(t, c.Stop()) })
	host := strings.TrimPrefix(from.URL, "https://")
	installed, err := installation.InstallWith(t.Context(), c.Cluster, installation.Options{
		Overlay:     "url-sources",
		WebhookArgs: []string{"--require-service-account", "--url-sources"},
		AgentArgs:   []string{"--require-service-account", "--leader-elect=false", "--url-source-hosts=" + host, "--url-source-private-cidrs=127.0.0.0/8"},
	}, os.Stderr)
	kit.Must(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			kit.ShowLog(installed.Logs()...)
		}
	})
	w := &strictWorld{plane: c, installation: installed, namespace: "sources"}
	c.CreateNamespace(t, w.namespace)
	c.Kubectl(t, "--namespace", w.namespace, "create", "serviceaccount", "krake-deployer")
	c.Kubectl(t, "--namespace", w.namespace, "create", "rolebinding", "krake-deployer", "--clusterrole=edit",
		"--serviceaccount", w.namespace+":krake-deployer")
	return w
}

// apply creates or changes an Application with a source, as a user.
func (w *strictWorld) apply(t *testing.T, name, key, source string) {
	t.Helper()
	w.plane.Apply(t, w.text(t, name, key, source))
}

// text returns an Application as its user writes it.
func (w *strictWorld) text(t *testing.T, name, key, source string) string {
	t.Helper()
	return kit.YAML(t, kit.Application(w.namespace, name, "", kit.Data(key, source)))
}

// get reads a field of an object; it is empty without one.
func (w *strictWorld) get(t *testing.T, name, path string) string {
	t.Helper()
	return w.plane.Kubectl(t, "--namespace", w.namespace, "get", "--ignore-not-found", "configmap", name, "--output", "jsonpath={"+path+"}")
}

func (w *strictWorld) mustHave(t *testing.T, name, path, want string) {
	t.Helper()
	kit.Eventually(t, func() string {
		if got := w.get(t, name, path); !strings.Contains(got, want) {
			return fmt.Sprintf("%s of ConfigMap %s is %q, want %q; status: %s", path, name, got, want, w.get(t, name, ".data.status"))
		}
		return ""
	})
}

const colourPath, statePath = ".data.colour", `.metadata.labels.krake\.dev/state`

// In strict mode with URL sources, a URL is fetched once for each spec, translated, and
// applied by the account of the Application. Content with another digest than the
// user's is not applied.
func TestURLSource(t *testing.T) {
	t.Parallel()
	from := newTemplates()
	t.Cleanup(from.Close)
	w := newStrictWorld(t, from)
	begin := w.plane.Mark(t)
	from.put("/web.yaml", []byte(template("green")))
	from.put("/types.yaml", []byte(definitions))
	w.apply(t, "web", application.ToscaKey, from.URL+"/web.yaml")
	w.mustHave(t, "settings", colourPath, "green")
	w.mustHave(t, "web", statePath, string(application.StateRunning))
	w.mustHave(t, "web", `.data.status\.translated_manifest`, `"colour":"green"`)
	if got := w.get(t, "web", `.data.spec\.tosca`) + w.get(t, "web", `.data.spec\.manifest`); got != from.URL+"/web.yaml" {
		t.Errorf("the spec is %q", got)
	}
	if from.count("/web.yaml") != 1 || from.count("/types.yaml") != 1 {
		t.Errorf("asked for: %v, want each once", from.asked)
	}
	checkWriter(t, begin, w.namespace)

	// Later content of the URL does not affect the Application, or a restarted agent,
	// which still repairs drift.
	from.put("/web.yaml", []byte(template("red")))
	kit.Must(t, w.installation.KillAgent())
	kit.Must(t, w.installation.StartAgent(t.Context()))
	w.plane.Kubectl(t, "--namespace", w.namespace, "patch", "configmap", "settings", "--type=merge", "--patch", `{"data": {"colour": "wrong"}}`)
	w.mustHave(t, "settings", colourPath, "green")
	if got := from.count("/web.yaml"); got != 1 {
		t.Errorf("after a restart it was fetched %d times, want once", got)
	}

	w.checkDigests(t, from)
	w.checkRefused(t, from)
	w.plane.Kubectl(t, "--namespace", w.namespace, "delete", "configmap", "web", "--timeout", kit.Timeout.String())
	if left := w.get(t, "settings", ".metadata.name"); left != "" {
		t.Error("the Application is gone, and its object is not")
	}
}

// checkWriter fails unless the agent has written only as the account.
func checkWriter(t *testing.T, begin kit.Mark, namespace string) {
	t.Helper()
	created := begin.Requests(t, func(l kit.Request) bool {
		return l.IsAgents() && l.IsAccepted() && l.Verb == "create" && l.Object.Namespace == namespace && l.Object.Resource != "events"
	})
	if len(created) != 2 {
		t.Errorf("created: %v, want a ConfigMap and a Service", created)
	}
	for _, each := range created {
		if want := "system:serviceaccount:" + namespace + ":krake-deployer"; each.As.Username != want {
			t.Errorf("%s: as %q, want %s", each, each.As.Username, want)
		}
	}
}

// checkDigests sets the digest of an archive in an Application, at first a wrong one.
func (w *strictWorld) checkDigests(t *testing.T, from *templates) {
	t.Helper()
	right := archive(t, strings.ReplaceAll(template("blue"), "settings", "pinned"))
	sum := sha256.Sum256(right)
	pin := "#sha256=" + hex.EncodeToString(sum[:])
	from.put("/pinned.csar", right[:len(right)-1])
	w.apply(t, "pinned-app", application.CSARKey, from.URL+"/pinned.csar"+pin)
	w.mustHave(t, "pinned-app", `.data.status`, "has not the digest of the URL")
	w.mustHave(t, "pinned-app", statePath, string(application.StateFailed))
	if got := w.get(t, "pinned", ".metadata.name"); got != "" {
		t.Error("what has another digest was applied")
	}
	from.put("/right.csar", right)
	w.apply(t, "pinned-app", application.CSARKey, from.URL+"/right.csar"+pin)
	w.mustHave(t, "pinned", colourPath, "blue")
}

// checkRefused tries URLs without content, and URLs that must not be fetched.
func (w *strictWorld) checkRefused(t *testing.T, from *templates) {
	t.Helper()
	w.apply(t, "missing-app", application.ToscaKey, from.URL+"/missing.yaml")
	w.mustHave(t, "missing-app", statePath, string(application.StateTranslating))
	w.mustHave(t, "missing-app", ".data.status", "404")
	victim := newTemplates()
	defer victim.Close()
	for name, url := range map[string]string{
		"another-host": "https://templates.example.org/web.yaml",
		"another-port": victim.URL + "/web.yaml",
		"metadata":     "https://169.254.169.254/latest.yaml",
	} {
		w.apply(t, name, application.ToscaKey, url)
		w.mustHave(t, name, ".data.status", "--url-source-hosts")
	}
	if len(victim.asked) > 0 {
		t.Errorf("the victim was asked for %v", victim.asked)
	}
	text := w.text(t, "plain", application.ToscaKey, strings.Replace(from.URL, "https", "http", 1)+"/web.yaml")
	if out, err := kit.TryKubectl(t.Context(), w.plane.Cluster, text, "create", "-f", "-"); err == nil || !strings.Contains(out, "https://") {
		t.Errorf("a URL without TLS: %v, %s", err, out)
	}
}
