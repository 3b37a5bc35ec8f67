package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/observer"
)

// Gauges are metrics whose values are read at each scrape.
type Gauges struct {
	// Applications counts the Applications by state; nil: they are not known.
	Applications func() map[application.State]int
	Stats        func() []observer.Stat
	Contended    func() int
	// Waiting counts the Applications that wait for a turn.
	Waiting func() int
	// KindOf returns the label of a resource.
	KindOf func(schema.GroupVersionResource) string
	// HubToken is the file with the token for a hub that is another cluster, or empty.
	HubToken string
}

var (
	applicationsNow = prometheus.NewDesc("krake_applications",
		"Applications of this cluster by state, as each replica sees them.", []string{"state"}, nil)
	observedObjects = prometheus.NewDesc("krake_observed_objects",
		"Watched objects, by kind; none if another replica acts.", []string{"kind"}, nil)
	observedBytes = prometheus.NewDesc("krake_observed_bytes",
		"Estimated memory for the watched objects.", nil, nil)
	contendedObjects = prometheus.NewDesc("krake_contended_objects",
		"Objects whose observed fields another client changes again and again.", nil, nil)
	waitingApplications = prometheus.NewDesc("krake_waiting_applications",
		"Applications with a new spec, or to be deleted, that wait until others are carried out.", nil, nil)
	hubTokenExpiry = prometheus.NewDesc("krake_agent_hub_token_expiry_timestamp_seconds",
		"When the token for the hub expires, in seconds since 1970; none if the hub is the same cluster.", nil, nil)
)

// Describe implements prometheus.Collector.
func (g *Gauges) Describe(descriptions chan<- *prometheus.Desc) {
	for _, description := range []*prometheus.Desc{applicationsNow, observedObjects, observedBytes, contendedObjects, waitingApplications, hubTokenExpiry} {
		descriptions <- description
	}
}

// Collect implements prometheus.Collector.
func (g *Gauges) Collect(found chan<- prometheus.Metric) {
	gauge := func(description *prometheus.Desc, value float64, labels ...string) {
		found <- prometheus.MustNewConstMetric(description, prometheus.GaugeValue, value, labels...)
	}
	for state, count := range g.Applications() {
		gauge(applicationsNow, float64(count), string(state))
	}
	objects, bytes := map[string]int{}, int64(0)
	for _, stat := range g.Stats() {
		objects[g.KindOf(stat.Resource)] += stat.Objects // of two versions, perhaps
		bytes += stat.Bytes
	}
	for kind, count := range objects {
		gauge(observedObjects, float64(count), kind)
	}
	gauge(observedBytes, float64(bytes))
	gauge(contendedObjects, float64(g.Contended()))
	gauge(waitingApplications, float64(g.Waiting()))
	if expires, known := expiryOf(g.HubToken); known {
		gauge(hubTokenExpiry, expires)
	}
}

// noState counts the Applications that no agent has written to yet.
const noState application.State = "none"

// CountStates counts the Applications of a cluster by the label of their state. A state
// that no Application is in counts as well: an alert needs the 0. One that is only
// leaving the cluster counts where it goes.
func CountStates(apps []corev1.ConfigMap, cluster string) map[application.State]int {
	counts := map[application.State]int{noState: 0}
	for _, known := range application.States() {
		counts[known] = 0
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
