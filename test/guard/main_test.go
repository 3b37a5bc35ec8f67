package guard

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/installation"
	"github.com/krake-observer/krake-observer/test/kit"
)

var update = flag.Bool("update", false, "write what is said into the transcript")

// What all tests share. No other suite uses this control plane, because the guard's configuration is
// cluster-wide. The autoscaler runs every second, and not every 15.
var (
	hub       *kit.Plane
	installed *installation.Installation
)

// saviour is a user who breaks the glass.
const saviour = "saviour"

func TestMain(m *testing.M) {
	kit.Suite{
		Name: "guard",
		Start: func(ctx context.Context) (err error) {
			hub, err = kit.StartPlane(ctx, cluster.Options{
				PretendKubelet: true,
				ControllerArgs: []string{"--horizontal-pod-autoscaler-sync-period=1s"},
			})
			if err != nil {
				return err
			}
			installed, err = installation.InstallWith(ctx, hub.Cluster, installation.Options{
				Agents: 2, Guard: true, AgentArgs: []string{"--guard-break-glass-users=" + saviour},
			}, os.Stderr)
			if err != nil {
				return err
			}
			return waitGuarded(ctx)
		},
		Logs: func() []string { return installed.Logs() },
		Stop: func() error { return hub.Stop() },
	}.Main(m)
}

// waitGuarded waits until the API server calls the guard.
func waitGuarded(ctx context.Context) error {
	if _, err := hub.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "first"}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	cm := kit.Application("first", "web", kit.WebManifest)
	if _, err := hub.CoreV1().ConfigMaps("first").Create(ctx, cm, metav1.CreateOptions{}); err != nil {
		return err
	}
	return kit.Wait(ctx, "the guard warns", func() (bool, error) {
		said, err := patch(ctx, anna, "first", `{"spec": {"replicas": 7}}`, metav1.DryRunAll)
		return err == nil && len(said) > 0, nil
	})
}

// anna is a user with all rights.
const anna = "anna"

// told collects the warnings of a client.
type told struct {
	mu    sync.Mutex
	texts []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (s *told) HandleWarningHeader(_ int, _ string, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.texts = append(s.texts, text)
}

// clientOf returns a client of a user with all rights, and its warnings.
func clientOf(user string) (dynamic.Interface, *told, error) {
	config, said := rest.CopyConfig(hub.RESTConfig()), &told{}
	config.WarningHandler = said
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:masters", "system:authenticated"}}
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	return client, said, err
}

// patch changes the Deployment web as a user, and returns the warnings.
func patch(ctx context.Context, user, namespace, text string, dryRun ...string) ([]string, error) {
	client, said, err := clientOf(user)
	if err != nil {
		return nil, err
	}
	_, err = client.Resource(kit.Deployments).Namespace(namespace).Patch(ctx, "web", types.MergePatchType, []byte(text),
		metav1.PatchOptions{FieldManager: "somebody", DryRun: dryRun})
	return said.texts, err
}

// newWeb creates a namespace with the Application web, which is RUNNING.
func newWeb(t *testing.T, options ...kit.Option) (namespace string) {
	t.Helper()
	namespace = hub.NewNamespaceOfApps(t, "guard")
	app := hub.CreateApp(t, kit.Application(namespace, "web", kit.WebManifest, options...))
	app.MustBe(t, application.StateRunning)
	settle(t, namespace)
	return namespace
}

// settle waits until every replica knows the present Application.
func settle(t *testing.T, namespace string) {
	t.Helper()
	mode := hub.App(namespace, "web").Stored(t).Annotations[application.GuardAnnotation]
	calm := 0
	kit.Eventually(t, func() string {
		said, err := patch(t.Context(), anna, namespace, `{"spec": {"replicas": 9, "revisionHistoryLimit": 5}}`, metav1.DryRunAll)
		isTold := len(said) > 0 || err != nil
		if isTold == (mode == "off") || (err != nil) != (mode == "deny") {
			calm = 0
			return fmt.Sprintf("the guard is %q: it says %q, %v", mode, said, err)
		}
		if calm++; calm < 6 { // both replicas
			return "the guard may be behind on one replica"
		}
		return ""
	})
}

// asked returns how many requests the guards of all replicas have judged, by result.
func asked(t *testing.T) map[string]float64 {
	t.Helper()
	counts := map[string]float64{}
	for _, url := range installed.AgentMetricsURLs() {
		code, text, err := kit.TryFetch(t.Context(), url, hub.Token(t, "default", metricsReader(t)))
		kit.Must(t, err)
		if code != http.StatusOK {
			t.Fatalf("%s answers %d: %s", url, code, text)
		}
		for line := range strings.Lines(text) {
			rest, ok := strings.CutPrefix(line, `krake_guard_requests_total{result="`)
			if !ok {
				continue
			}
			name, value, _ := strings.Cut(rest, `"} `)
			var count float64
			kit.Must(t, json.Unmarshal([]byte(strings.TrimSpace(value)), &count))
			counts[name] += count
		}
	}
	return counts
}

var readers sync.Once

// metricsReader returns an account of the namespace default that may read metrics.
func metricsReader(t *testing.T) string {
	t.Helper()
	const name = "metrics-reader"
	readers.Do(func() {
		hub.Kubectl(t, "create", "serviceaccount", name, "--namespace=default")
		hub.Kubectl(t, "create", "clusterrolebinding", name, "--clusterrole=krake-metrics-reader", "--serviceaccount=default:"+name)
	})
	return name
}

// mustTell checks that one of the warnings has all parts.
func mustTell(t *testing.T, said []string, parts ...string) {
	t.Helper()
	if !slices.ContainsFunc(said, func(text string) bool {
		return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
	}) {
		t.Errorf("no warning has %q: %q", parts, said)
	}
}

// patience is longer than the timeout of the guard, 2 s, on a busy machine, and shorter than the 10 s that an API
// server waits for a webhook without one.
const patience = 9 * time.Second
