package telemetry

import (
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

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/observer"
	"github.com/krake-observer/krake-observer/pkg/status"
	"github.com/krake-observer/krake-observer/test/check"
	"github.com/krake-observer/krake-observer/test/kit"
)

var deployment = manifest.ID{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "demo", Name: "web"}

// tokenFile returns a file with a token of these claims.
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
	const want = `# HELP krake_agent_acting 1 if this replica acts: it has the Leases of its cluster on target and hub. One replica of each cluster does, or one for each shard.
# TYPE krake_agent_acting gauge
krake_agent_acting{cluster="local"} 1
# HELP krake_agent_hub_token_expiry_timestamp_seconds When the token for the hub expires, in seconds since 1970; none if the hub is the same cluster.
# TYPE krake_agent_hub_token_expiry_timestamp_seconds gauge
krake_agent_hub_token_expiry_timestamp_seconds 1.79e+09
# HELP krake_agent_shards Among how many replicas the Applications of the cluster are divided (--shards): so many must act.
# TYPE krake_agent_shards gauge
krake_agent_shards{cluster="local"} 3
# HELP krake_api_requests_total Requests to the API servers, by reason: create, repair, delete, read, resync or status. Watches and the Leases are not among them.
# TYPE krake_api_requests_total counter
krake_api_requests_total{reason="create"} 0
krake_api_requests_total{reason="delete"} 0
krake_api_requests_total{reason="read"} 0
krake_api_requests_total{reason="repair"} 1
krake_api_requests_total{reason="resync"} 0
krake_api_requests_total{reason="status"} 0
# HELP krake_applications Applications of this cluster by state, as each replica sees them.
# TYPE krake_applications gauge
krake_applications{state="COMPLETED"} 0
krake_applications{state="CREATING"} 0
krake_applications{state="DEGRADED"} 0
krake_applications{state="DELETING"} 0
krake_applications{state="FAILED"} 1
krake_applications{state="MIGRATING"} 0
krake_applications{state="READY_FOR_ACTION"} 0
krake_applications{state="RESTARTING"} 0
krake_applications{state="RUNNING"} 2
krake_applications{state="TRANSLATING"} 0
krake_applications{state="WAITING_FOR_CLEANING"} 0
krake_applications{state="none"} 2
# HELP krake_contended_objects Objects whose observed fields another client changes again and again.
# TYPE krake_contended_objects gauge
krake_contended_objects 4
# HELP krake_drifts_total Drifts of objects, by outcome: reverted, recreated, observed, held, contended or stalled.
# TYPE krake_drifts_total counter
krake_drifts_total{kind="Deployment.apps",outcome="reverted"} 2
krake_drifts_total{kind="Service",outcome="contended"} 1
krake_drifts_total{kind="Service",outcome="held"} 1
krake_drifts_total{kind="Service",outcome="observed"} 1
krake_drifts_total{kind="Service",outcome="recreated"} 1
krake_drifts_total{kind="Service",outcome="stalled"} 2
# HELP krake_events_dropped_total Events of drifts that were not written, because of the limits: one per second for an Application, and five for all.
# TYPE krake_events_dropped_total counter
krake_events_dropped_total 0
# HELP krake_observed_bytes Estimated memory for the watched objects.
# TYPE krake_observed_bytes gauge
krake_observed_bytes 1040
# HELP krake_observed_objects Watched objects, by kind; none if another replica acts.
# TYPE krake_observed_objects gauge
krake_observed_objects{kind="services"} 2
krake_observed_objects{kind="widgets.example.com"} 4
# HELP krake_repair_duration_seconds Time from the event of a drift until the API server has accepted its repair.
# TYPE krake_repair_duration_seconds histogram
krake_repair_duration_seconds_sum 1
krake_repair_duration_seconds_count 2
# HELP krake_repairs_total Repairs of objects, by result: reverted, recreated, noop (the API server stores another form), refused or error.
# TYPE krake_repairs_total counter
krake_repairs_total{kind="Deployment.apps",result="noop"} 1
krake_repairs_total{kind="Deployment.apps",result="reverted"} 1
krake_repairs_total{kind="Service",result="error"} 1
krake_repairs_total{kind="Service",result="recreated"} 1
krake_repairs_total{kind="Service",result="refused"} 1
# HELP krake_waiting_applications Applications with a new spec, or to be deleted, that wait until others are carried out.
# TYPE krake_waiting_applications gauge
krake_waiting_applications 5
`
	check.Equal(t, "metrics", want, scrape(t, exposed(t, counts)))
}

// The names and units are those that Prometheus recommends.
func TestMetricsLint(t *testing.T) {
	counts := NewMetrics()
	counts.countOutcome(status.Outcome{Action: status.Reverted, Object: deployment})
	families, err := exposed(t, counts).Gather()
	kit.Must(t, err)
	if len(families) != 11 {
		t.Errorf("%d metrics", len(families))
	}
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
	if got := strings.Count(text, "krake_drifts_total{"); got != maxKindLabels+1 {
		t.Errorf("%d series", got)
	}
	if want := fmt.Sprintf(`krake_drifts_total{kind="other",outcome="recreated"} %d`, maxKindLabels); !strings.Contains(text, want) {
		t.Errorf("there is no %s", want)
	}
}
