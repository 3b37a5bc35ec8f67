package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/observer"
)

// gauges are metrics that are read when they are asked for.
type gauges struct {
	applications func() map[application.State]int
	stats        func() []observer.Stat
	contended    func() int
	// kindOf returns the label of a resource.
	kindOf func(schema.GroupVersionResource) string

	applicationsNow, observedObjects, observedBytes, contendedObjects *prometheus.Desc
}

// NewGauges makes the metrics that are read when they are asked for. applications counts
// the Applications by state, and is nil while they are not known; kindOf returns the label
// of a resource.
func NewGauges(applications func() map[application.State]int, stats func() []observer.Stat, contended func() int,
	kindOf func(schema.GroupVersionResource) string,
) prometheus.Collector {
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

// CountStates counts the Applications of a cluster by the label of their state. A state
// that no Application is in counts as well: an alert needs the 0. One that is only
// leaving the cluster counts where it goes.
func CountStates(apps []corev1.ConfigMap, cluster string) map[application.State]int {
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
