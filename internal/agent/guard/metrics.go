package guard

import (
	"github.com/prometheus/client_golang/prometheus"
)

// result is what became of a request.
type result string

const (
	quiet    result = "quiet"    // the agent would revert nothing
	warned   result = "warned"   // it passed with warnings
	denied   result = "denied"   // it was refused
	bypassed result = "bypassed" // its user passes by breaking the glass
	off      result = "off"      // the Application wants no guard
	foreign  result = "foreign"  // the object belongs to no Application
	unknown  result = "unknown"  // it could not be judged, and passed
)

// metrics count the requests.
type metrics struct {
	requests *prometheus.CounterVec
	duration prometheus.Histogram
	serving  prometheus.Gauge
}

func newMetrics() metrics {
	m := metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "krake_guard_requests_total",
			Help: "Requests that the guard was asked about, by result: quiet (the agent would revert nothing), warned, denied, bypassed (by break glass), off, foreign (the object belongs to no Application) or unknown.",
		}, []string{"result"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "krake_guard_duration_seconds",
			Help:    "Time that the guard takes for one request.",
			Buckets: prometheus.ExponentialBuckets(0.0001, 2, 15),
		}),
		serving: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "krake_guard_serving",
			Help: "1 if this replica serves the guard, with a certificate that the API server trusts.",
		}),
	}
	for _, one := range []result{quiet, warned, denied, bypassed, off, foreign, unknown} {
		m.requests.WithLabelValues(string(one))
	}
	return m
}

func (m metrics) register(registry prometheus.Registerer) error {
	for _, collector := range []prometheus.Collector{m.requests, m.duration, m.serving} {
		if err := registry.Register(collector); err != nil {
			return err
		}
	}
	return nil
}
