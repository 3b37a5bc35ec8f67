package agent

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

// distantHub is another address of the API server. It records the paths of requests.
type distantHub struct {
	config *rest.Config

	mu    sync.Mutex
	asked map[string]bool
}

func newDistantHub(t *testing.T) *distantHub {
	t.Helper()
	address, err := url.Parse(server.Host)
	kit.Must(t, err)
	transport, err := rest.TransportFor(server)
	kit.Must(t, err)
	h := &distantHub{asked: map[string]bool{}}
	passing := &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(address) }}
	way := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		h.asked[r.Method+" "+r.URL.Path] = true
		h.mu.Unlock()
		passing.ServeHTTP(w, r)
	}))
	t.Cleanup(way.CloseClientConnections)
	h.config = &rest.Config{Host: way.URL, QPS: -1}
	return h
}

// askedBeside returns the requests to the hub whose paths do not match.
func (h *distantHub) askedBeside(allowed *regexp.Regexp) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var beside []string
	for path := range h.asked {
		if !allowed.MatchString(path) {
			beside = append(beside, path)
		}
	}
	slices.Sort(beside)
	return beside
}

// An agent whose Applications are on a hub asks that hub only for them, in their namespaces.
// It puts the objects into the namespaces of its own cluster that the map names. Several
// agents can run in one process.
func TestHubAndTargetApart(t *testing.T) {
	clients := kubernetes.NewForConfigOrDie(server)
	name := kit.UniqueName("apart")
	atHub, atBoth, atTarget := name+"-hub", name+"-other", name+"-target"
	for _, namespace := range []string{application.AgentsNamespace, atHub, atBoth, atTarget} {
		createNamespace(t, clients, namespace)
	}
	hub := newDistantHub(t)
	registry := prometheus.NewPedanticRegistry()
	for _, cluster := range []string{name, name + "-beside"} {
		options := optionsOf(t, cluster,
			"--hub-namespaces", atHub+","+atBoth, "--namespaces", atTarget+","+atBoth, "--namespace-map", atHub+"="+atTarget)
		agent, err := newAgent(t.Context(), options, Configs{Hub: hub.config, Target: server})
		kit.Must(t, err)
		if cluster == name {
			agent.configs.Registry = registry
		}
		kit.Must(t, agent.connect())
		defer start(t, agent)()
	}
	createApplication(t, clients, atHub, name, `[{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "1"}}]`)
	kit.EventuallyNil(t, func() error {
		settings, err := clients.CoreV1().ConfigMaps(atTarget).Get(t.Context(), "settings", metav1.GetOptions{})
		if err == nil && settings.Data["a"] != "1" {
			return fmt.Errorf("its data is %v", settings.Data)
		}
		return err
	})
	kit.EventuallyNil(t, func() error {
		app, err := clients.CoreV1().ConfigMaps(atHub).Get(t.Context(), name, metav1.GetOptions{})
		if err == nil && app.Labels[application.StateLabel] != string(application.StateRunning) {
			return fmt.Errorf("the Application says %s", app.Data[application.StatusKey])
		}
		return err
	})
	for _, namespace := range []string{atHub, atTarget} { // of the Application, and of the object
		kit.EventuallyNil(t, func() error {
			events, err := clients.EventsV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
			if err == nil && len(events.Items) == 0 {
				return fmt.Errorf("no Events in %s", namespace)
			}
			return err
		})
	}
	allowed := regexp.MustCompile(strings.ReplaceAll(`^((GET|PATCH) /api/v1/namespaces/NAME-(hub|other)/configmaps(/NAME)?`+
		`|(GET|POST|PUT) /apis/coordination.k8s.io/v1/namespaces/krake-agents/leases(/krake-cluster-NAME(-beside)?)?`+
		`|(POST|PATCH) /apis/events.k8s.io/v1/namespaces/NAME-hub/events(/.*)?)$`, "NAME", name))
	check.Equal(t, "the hub was asked for more", []string(nil), hub.askedBeside(allowed))
	if text := scrape(t, registry); !regexp.MustCompile(`krake_applications\{state="RUNNING"\} 1`).MatchString(text) {
		t.Errorf("the metrics do not tell of the Application:\n%s", text)
	}
}

func createApplication(t *testing.T, clients kubernetes.Interface, namespace, cluster, manifest string) {
	t.Helper()
	cm := kit.Application(namespace, cluster, manifest, kit.On(cluster))
	cm.Labels = map[string]string{application.HolderLabel(cluster): "true"} // as the webhook does
	_, err := clients.CoreV1().ConfigMaps(namespace).Create(t.Context(), cm, metav1.CreateOptions{})
	kit.Must(t, err)
}
