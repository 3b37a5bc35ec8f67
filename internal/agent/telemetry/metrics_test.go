package telemetry

import (
	_ "embed"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/observer"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

var deployment = manifest.ID{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "demo", Name: "web"}

func tokenFile(t *testing.T, claims string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	kit.Must(t, os.WriteFile(file, []byte("e30."+base64.RawURLEncoding.EncodeToString([]byte(claims))+".signature\n"), 0o600))
	return file
}

// A token whose expiry is not known has no metric.
func TestExpiryOfTokens(t *testing.T) {
	notAToken := filepath.Join(t.TempDir(), "token")
	kit.Must(t, os.WriteFile(notAToken, []byte("token"), 0o600))
	for why, test := range map[string]struct {
		file string
		want float64
	}{
		"a token":             {tokenFile(t, `{"exp": 1790000000}`), 1790000000},
		"no file":             {"", 0},
		"no token":            {notAToken, 0},
		"a token for ever":    {tokenFile(t, `{}`), 0},
		"claims without JSON": {tokenFile(t, `exp`), 0},
	} {
		seconds, known := expiryOf(test.file)
		check.Equal(t, why, test.want, seconds)
		check.Equal(t, why+": known", test.want > 0, known)
	}
}

// exposed returns a registry with all metrics of an agent after some events.
func exposed(t *testing.T, counts *Metrics) *prometheus.Registry {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	kit.Must(t, counts.Register(registry))
	inState := func(state string) corev1.ConfigMap {
		return corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{application.StateLabel: state}}}
	}
	resource := func(group, version, plural string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: version, Resource: plural}
	}
	gauges := &Gauges{
		func() map[application.State]int {
			leaving := inState("RUNNING")
			leaving.Annotations = map[string]string{application.ClusterAnnotation: "elsewhere"}
			return CountStates([]corev1.ConfigMap{inState("RUNNING"), inState("RUNNING"), inState("FAILED"), inState("whatever"), {}, leaving}, application.LocalCluster)
		},
		func() []observer.Stat {
			return []observer.Stat{
				{Resource: resource("", "v1", "services"), Objects: 2, Bytes: 1000},
				{Resource: resource("example.com", "v1", "widgets"), Objects: 1, Bytes: 10},
				{Resource: resource("example.com", "v2", "widgets"), Objects: 3, Bytes: 30},
			}
		},
		func() int { return 4 },
		func() int { return 5 },
		func(resource schema.GroupVersionResource) string { return resource.GroupResource().String() },
		tokenFile(t, `{"exp": 1790000000}`),
	}
	kit.Must(t, registry.Register(gauges))
	return registry
}

// scrape returns the lines of the metrics, without those of the histogram's buckets.
func scrape(t *testing.T, registry *prometheus.Registry) string {
	t.Helper()
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if answer.Code != http.StatusOK {
		t.Fatalf("answered %d: %s", answer.Code, answer.Body)
	}
	var kept strings.Builder
	for line := range strings.Lines(answer.Body.String()) {
		if !strings.Contains(line, "_bucket{") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

//go:embed testdata/metrics.txt
var wantMetrics string

// The exact metrics: alerts and dashboards of users depend on them.
func TestMetrics(t *testing.T) {
	counts := NewMetrics()
	service := manifest.ID{APIVersion: "v1", Kind: "Service", Namespace: "demo", Name: "web"}
	deployment := manifest.ID{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "demo", Name: "web"}
	for _, outcome := range []status.Outcome{
		{Action: status.Created, Object: service, Took: time.Second}, // no drift, no repair
		{Action: status.Reverted, Object: deployment, Took: 250 * time.Millisecond},
		{Action: status.Reverted, Object: deployment, NoOp: true},
		{Action: status.Recreated, Object: service, Took: 750 * time.Millisecond},
		{Action: status.Detected, Object: service, Reason: "ObserveMode"},
		{Action: status.Detected, Object: service, Reason: "Held"},
		{Action: status.Detected, Object: service, Reason: "Contended"},
		{Action: status.Detected, Object: service, Reason: "Invalid"},
		{Action: status.Detected, Object: service, Reason: "Ineffective"},
		{Action: status.Deleted, Object: service},
	} {
		counts.countOutcome(outcome)
	}
	counts.CountRequest("repair")
	counts.SetActing("local", true)
	counts.SetShards("local", 3)
	check.Equal(t, "metrics", wantMetrics, scrape(t, exposed(t, counts)))
}

// The names and units are those that Prometheus recommends.
func TestMetricsLint(t *testing.T) {
	counts := NewMetrics()
	counts.countOutcome(status.Outcome{Action: status.Reverted, Object: deployment})
	families, err := exposed(t, counts).Gather()
	kit.Must(t, err)
	check.Equal(t, "metrics", 11, len(families))
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, error %v", problems, err)
	}
}

// The number of values of a label is bounded, however many kinds occur.
func TestKindLabelsAreBounded(t *testing.T) {
	counts := NewMetrics()
	for i := range 2 * maxKindLabels {
		id := manifest.ID{APIVersion: "example.com/v1", Kind: fmt.Sprintf("Kind%d", i), Name: "x"}
		counts.countOutcome(status.Outcome{Action: status.Recreated, Object: id})
	}
	text := scrape(t, exposed(t, counts))
	check.Equal(t, "series", maxKindLabels+1, strings.Count(text, "krake_drifts_total{"))
	if want := fmt.Sprintf(`krake_drifts_total{kind="other",outcome="recreated"} %d`, maxKindLabels); !strings.Contains(text, want) {
		t.Errorf("there is no %s", want)
	}
}
