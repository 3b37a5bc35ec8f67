package telemetry

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/krake-observer/krake-observer/internal/status"
)

// maxKindLabels bounds the values of the label kind. A kind is named when an object of it was seen, so
// there are no more than the target serves; over the years of a process that can be many.
const (
	maxKindLabels = 200
	otherLabel    = "other"
)

// Metrics are the counters of an agent.
type Metrics struct {
	drifts   *prometheus.CounterVec
	repairs  *prometheus.CounterVec
	duration prometheus.Histogram
	requests *prometheus.CounterVec
	acting   *prometheus.GaugeVec
	shards   *prometheus.GaugeVec
	// dropped counts the Events that pace leaves out.
	dropped prometheus.Counter

	mu sync.Mutex
	// kinds are the values of the label kind.
	kinds map[string]bool
}

// NewMetrics makes the counters. It sets each reason of a request to 0.
func NewMetrics() *Metrics {
	m := &Metrics{
		drifts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "krake_drifts_total",
			Help: "Drifts of objects, by outcome: reverted, recreated, observed, held, contended or stalled.",
		}, []string{"kind", "outcome"}),
		repairs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "krake_repairs_total",
			Help: "Repairs of objects, by result: reverted, recreated, noop (the API server stores another form), refused or error.",
		}, []string{"kind", "result"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "krake_repair_duration_seconds",
			Help:    "Time from the event of a drift until the API server has accepted its repair.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 16),
		}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "krake_api_requests_total",
			Help: "Requests to the API servers, by reason: create, repair, delete, read, resync or status. Watches and the Leases are not among them.",
		}, []string{"reason"}),
		acting: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "krake_agent_acting",
			Help: "1 if this replica acts: it has the Leases of its cluster on target and hub. One replica of each cluster does, or one for each shard.",
		}, []string{"cluster"}),
		shards: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "krake_agent_shards",
			Help: "Among how many replicas the Applications of the cluster are divided (--shards): so many must act.",
		}, []string{"cluster"}),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "krake_events_dropped_total",
			Help: "Events of drifts that were not written, because of the limits: one per second for an Application, and five for all.",
		}),
		kinds: map[string]bool{},
	}
	for _, reason := range []string{"create", "repair", "delete", "read", resyncReason, statusReason} {
		m.requests.WithLabelValues(reason)
	}
	return m
}

// Register registers the metrics.
func (m *Metrics) Register(registry prometheus.Registerer) error {
	for _, collector := range []prometheus.Collector{m.drifts, m.repairs, m.duration, m.requests, m.acting, m.shards, m.dropped} {
		if err := registry.Register(collector); err != nil {
			return err
		}
	}
	return nil
}

// SetActing records whether this replica acts for the cluster.
func (m *Metrics) SetActing(cluster string, acting bool) {
	value := 0.0
	if acting {
		value = 1
	}
	m.acting.WithLabelValues(cluster).Set(value)
}

// SetShards records by how many replicas the Applications of the cluster are divided.
func (m *Metrics) SetShards(cluster string, shards int) {
	m.shards.WithLabelValues(cluster).Set(float64(shards))
}

// CountRequest counts a request to an API server.
func (m *Metrics) CountRequest(reason string) { m.requests.WithLabelValues(reason).Inc() }

// KindLabel returns the value of the label kind. It is bounded, see maxKindLabels.
func (m *Metrics) KindLabel(kind string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.kinds[kind] {
		if len(m.kinds) == maxKindLabels {
			return otherLabel
		}
		m.kinds[kind] = true
	}
	return kind
}

// countOutcome counts the drift and the repair of an outcome.
func (m *Metrics) countOutcome(outcome status.Outcome) {
	drift, repair := results(outcome)
	kind := m.KindLabel(outcome.Object.GroupVersionKind().GroupKind().String())
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

// results returns the results of a drift and of its repair; empty if there was none.
func results(outcome status.Outcome) (drift, repair string) {
	switch outcome.Action {
	case status.Recreated:
		return "recreated", "recreated"
	case status.Reverted:
		if outcome.NoOp {
			return "reverted", "noop"
		}
		return "reverted", "reverted"
	case status.RepairFailed:
		return "", "error"
	case status.Detected:
		return unrepaired(outcome.Reason)
	}
	return "", ""
}

// unrepaired returns the same of a drift that is not repaired, by its reason.
func unrepaired(reason string) (drift, repair string) {
	known, _ := status.Of(reason)
	switch {
	case reason == status.ObserveMode:
		return "observed", ""
	case known.Wanted:
		return strings.ToLower(reason), ""
	case reason == status.Invalid:
		return "stalled", "refused"
	}
	return "stalled", "error"
}

// Two of the reasons of a request. Package apply has the others.
const (
	resyncReason = "resync"
	statusReason = "status"
)

// CountWrites returns a client of the hub that counts the Applications it writes.
func CountWrites(inner client.Client, count func(reason string)) client.Client {
	return counted{inner, count}
}

type counted struct {
	client.Client

	count func(reason string)
}

// Patch implements client.Client.
func (c counted) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	c.count(statusReason)
	return c.Client.Patch(ctx, object, patch, options...)
}

// NewLists makes a client for the lists of metadata of a resync, which counts them.
func NewLists(config *rest.Config, count func(reason string)) (metadata.Interface, error) {
	config = rest.CopyConfig(config)
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper {
		return promhttp.RoundTripperFunc(func(request *http.Request) (*http.Response, error) {
			count(resyncReason)
			return inner.RoundTrip(request)
		})
	})
	return metadata.NewForConfig(config)
}
