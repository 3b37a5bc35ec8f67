package agent

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/observer"
	"github.com/krake-observer/krake-observer/pkg/reconcile"
)

// maxKindLabels bounds the values of the label kind. A kind is named when an
// object of it was seen, so there are no more than the target serves; and that
// can be many over the years of a process.
const (
	maxKindLabels = 200
	otherLabel    = "other"
)

// reasons are why the API server was asked: the values of the label of
// krake_api_requests_total.
func reasons() []string {
	return []string{"create", "repair", "delete", "read", resyncReason, statusReason}
}

const (
	resyncReason = "resync"
	statusReason = "status"
)

// metrics are what the agent counts.
type metrics struct {
	drifts   *prometheus.CounterVec
	repairs  *prometheus.CounterVec
	duration prometheus.Histogram
	requests *prometheus.CounterVec
	acting   *prometheus.GaugeVec
	// unwritten are the Events that pace leaves out.
	unwritten prometheus.Counter
	kinds     kindLabels
}

func newMetrics() *metrics {
	m := &metrics{
		drifts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "krake_drifts_total",
			Help: "Drifts of objects, by what became of them: reverted, recreated, observed, held, contended or stalled.",
		}, []string{"kind", "outcome"}),
		repairs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "krake_repairs_total",
			Help: "Repairs of objects, by result: reverted, recreated, noop (the API server writes it otherwise), refused or error.",
		}, []string{"kind", "result"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "krake_repair_duration_seconds",
			Help:    "Time from the event that told of a drift until the API server had accepted its repair.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 16),
		}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "krake_api_requests_total",
			Help: "Requests to the API servers, by reason: create, repair, delete, read, resync or status. Watches and the Leases are not among them.",
		}, []string{"reason"}),
		acting: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "krake_agent_acting",
			Help: "1 where this replica acts: it has the Leases of its cluster on target and hub. Of each cluster, one does.",
		}, []string{"cluster"}),
		unwritten: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "krake_events_unwritten_total",
			Help: "Events of drifts that were not written, because there were many: of an Application one in a second is, and five of all.",
		}),
		kinds: kindLabels{seen: map[string]bool{}},
	}
	for _, reason := range reasons() {
		m.requests.WithLabelValues(reason)
	}
	return m
}

func (m *metrics) register(registry prometheus.Registerer) error {
	for _, collector := range []prometheus.Collector{m.drifts, m.repairs, m.duration, m.requests, m.acting, m.unwritten} {
		if err := registry.Register(collector); err != nil {
			return err
		}
	}
	return nil
}

// act takes note of whether this replica acts for the cluster.
func (m *metrics) act(cluster string, acting bool) {
	value := 0.0
	if acting {
		value = 1
	}
	m.acting.WithLabelValues(cluster).Set(value)
}

// request counts a request.
func (m *metrics) request(reason string) { m.requests.WithLabelValues(reason).Inc() }

// acted counts what the loop did, or left as it is.
func (m *metrics) acted(outcome reconcile.Outcome) {
	drift, repair := results(outcome)
	kind := m.kinds.of(outcome.Object.GroupVersionKind().GroupKind().String())
	if drift != "" {
		m.drifts.WithLabelValues(kind, drift).Inc()
	}
	if repair == "" {
		return
	}
	m.repairs.WithLabelValues(kind, repair).Inc()
	if outcome.Took > 0 {
		m.duration.Observe(outcome.Took.Seconds())
	}
}

// results gives what became of a drift, and of its repair; empty if there was none.
func results(outcome reconcile.Outcome) (drift, repair string) {
	switch outcome.Action {
	case reconcile.Recreated:
		return "recreated", "recreated"
	case reconcile.Reverted:
		if outcome.NoOp {
			return "reverted", "noop"
		}
		return "reverted", "reverted"
	case reconcile.Failed:
		return "", "error"
	case reconcile.Detected:
		return unrepaired(outcome.Reason)
	}
	return "", ""
}

// unrepaired is the same of a drift that is left as it is, by the reason.
func unrepaired(reason string) (drift, repair string) {
	switch reason {
	case "Observed", "Held", "Contended":
		return strings.ToLower(reason), ""
	case "Invalid":
		return "stalled", "refused"
	}
	return "stalled", "error"
}

// kindLabels gives the values of the label kind.
type kindLabels struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (l *kindLabels) of(kind string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.seen[kind] {
		if len(l.seen) == maxKindLabels {
			return otherLabel
		}
		l.seen[kind] = true
	}
	return kind
}

// gauges are what is read when somebody asks for the metrics.
type gauges struct {
	applications func() map[application.State]int
	stats        func() []observer.Stat
	contended    func() int
	// kindOf gives the label of a resource.
	kindOf func(schema.GroupVersionResource) string

	applicationsNow, observedObjects, observedBytes, contendedObjects *prometheus.Desc
}

func newGauges(applications func() map[application.State]int, stats func() []observer.Stat, contended func() int,
	kindOf func(schema.GroupVersionResource) string,
) *gauges {
	return &gauges{
		applications: applications, stats: stats, contended: contended, kindOf: kindOf,
		applicationsNow: prometheus.NewDesc("krake_applications",
			"Applications of this cluster by state, as each replica sees them.", []string{"state"}, nil),
		observedObjects: prometheus.NewDesc("krake_observed_objects",
			"Objects that are watched, by kind; none where another replica acts.", []string{"kind"}, nil),
		observedBytes: prometheus.NewDesc("krake_observed_bytes",
			"Memory that is kept of the watched objects, estimated.", nil, nil),
		contendedObjects: prometheus.NewDesc("krake_contended_objects",
			"Objects of which somebody else changes observed fields again and again.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(descriptions chan<- *prometheus.Desc) {
	for _, description := range []*prometheus.Desc{g.applicationsNow, g.observedObjects, g.observedBytes, g.contendedObjects} {
		descriptions <- description
	}
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(found chan<- prometheus.Metric) {
	gauge := func(description *prometheus.Desc, value float64, labels ...string) {
		found <- prometheus.MustNewConstMetric(description, prometheus.GaugeValue, value, labels...)
	}
	for state, count := range g.applications() {
		gauge(g.applicationsNow, float64(count), string(state))
	}
	objects, bytes := map[string]int{}, int64(0)
	for _, stat := range g.stats() {
		objects[g.kindOf(stat.Resource)] += stat.Objects // of two versions, perhaps
		bytes += stat.Bytes
	}
	for kind, count := range objects {
		gauge(g.observedObjects, float64(count), kind)
	}
	gauge(g.observedBytes, float64(bytes))
	gauge(g.contendedObjects, float64(g.contended()))
}

// noState counts the Applications that no agent has written to yet.
const noState application.State = "none"

// countStates counts the Applications of a cluster by the label of their state. A
// state that no Application is in counts as well: an alert needs the 0. One that is
// only leaving the cluster counts where it goes.
func countStates(apps []corev1.ConfigMap, cluster string) map[application.State]int {
	counts := map[application.State]int{noState: 0}
	for _, known := range application.States() {
		counts[known.State] = 0
	}
	for i := range apps {
		if application.ClusterOf(&apps[i]) != cluster {
			continue
		}
		state := application.State(apps[i].Labels[application.StateLabel])
		if _, known := counts[state]; !known {
			state = noState
		}
		counts[state]++
	}
	return counts
}

// counted is a client of the hub that counts what it writes.
type counted struct {
	client.Client

	count func(reason string)
}

// Patch implements client.Client.
func (c counted) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	c.count(statusReason)
	return c.Client.Patch(ctx, object, patch, options...)
}

// countedTransport counts the requests that are sent, for one reason.
type countedTransport struct {
	http.RoundTripper

	count  func(reason string)
	reason string
}

// RoundTrip implements http.RoundTripper.
func (c countedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	c.count(c.reason)
	return c.RoundTripper.RoundTrip(request)
}
