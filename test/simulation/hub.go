package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/kubernetes"

	"github.com/krake-observer/krake-observer/test/cluster"
	"github.com/krake-observer/krake-observer/test/usage"
)

// reading has the metrics of the hub at one time: requests, watches and events by
// resource, and processes by name.
type reading struct {
	at                         time.Time
	requests, events, watchers counts
	// bytes is the size of all events.
	bytes     float64
	processes map[string]usage.Usage
}

// counts has numbers by request: "patch configmaps".
type counts map[string]float64

// hub is the API server that is measured.
type hub struct {
	client    kubernetes.Interface
	processes []*cluster.Process
}

// read reads its metrics.
func (h *hub) read(ctx context.Context) (reading, error) {
	text, err := h.client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return reading{}, fmt.Errorf("read the metrics of the hub: %w", err)
	}
	r := reading{at: time.Now(), requests: counts{}, events: counts{}, watchers: counts{}, processes: map[string]usage.Usage{}}
	if err := r.take(bytes.NewReader(text)); err != nil {
		return reading{}, fmt.Errorf("read the metrics of the hub: %w", err)
	}
	for _, process := range h.processes {
		used, err := usage.Of(process.PID())
		if err != nil {
			return reading{}, fmt.Errorf("measure %s: %w", process.Name(), err)
		}
		r.processes[process.Name()] = used
	}
	return r, nil
}

// take adds up the relevant metrics.
func (r *reading) take(text io.Reader) error {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(text)
	for _, m := range families["apiserver_request_total"].GetMetric() {
		r.requests[requestOf(labelsOf(m))] += m.GetCounter().GetValue()
	}
	for _, m := range families["apiserver_longrunning_requests"].GetMetric() {
		if labels := labelsOf(m); labels["verb"] == "WATCH" {
			r.watchers[labels["resource"]] += m.GetGauge().GetValue()
		}
	}
	for _, m := range families["apiserver_watch_events_sizes"].GetMetric() {
		r.events[labelsOf(m)["resource"]] += float64(m.GetHistogram().GetSampleCount())
		r.bytes += m.GetHistogram().GetSampleSum()
	}
	return err
}

func labelsOf(m *dto.Metric) map[string]string {
	labels := map[string]string{}
	for _, pair := range m.GetLabel() {
		labels[pair.GetName()] = pair.GetValue()
	}
	return labels
}

// requestOf names a request: "update leases", or "get" without a resource.
func requestOf(labels map[string]string) string {
	verb := strings.ToLower(labels["verb"])
	switch verb {
	case "put":
		verb = "update"
	case "post":
		verb = "create"
	}
	name := strings.TrimSpace(verb + " " + labels["resource"])
	if labels["subresource"] != "" && labels["resource"] != "" {
		name += "/" + labels["subresource"]
	}
	if code := labels["code"]; !strings.HasPrefix(code, "2") && code != "0" {
		name += " (" + code + ")"
	}
	return name
}

// since returns the difference to an earlier reading.
func (r reading) since(former reading) reading {
	passed := reading{
		requests: r.requests.less(former.requests), events: r.events.less(former.events), watchers: r.watchers,
		bytes: r.bytes - former.bytes, processes: map[string]usage.Usage{},
	}
	for name, used := range r.processes {
		passed.processes[name] = usage.Usage{CPU: used.CPU - former.processes[name].CPU, Resident: used.Resident}
	}
	return passed
}

// less subtracts other counts, and removes zeros.
func (c counts) less(other counts) counts {
	left := counts{}
	for name, number := range c {
		if number > other[name] {
			left[name] = number - other[name]
		}
	}
	return left
}

// ofAgents removes the resources on which no agent has a right.
func (c counts) ofAgents() counts {
	left := counts{}
	for name, number := range c {
		for _, resource := range []string{"configmaps", "leases", "events"} {
			if strings.Contains(name, resource) {
				left[name] = number
			}
		}
	}
	return left
}

// times multiplies the counts.
func (c counts) times(factor float64) counts {
	product := counts{}
	for name, number := range c {
		product[name] = number * factor
	}
	return product
}

// sum adds up the counts whose name begins with one of the words.
func (c counts) sum(words ...string) (sum float64) {
	for name, number := range c {
		for _, word := range words {
			if strings.HasPrefix(name, word) {
				sum += number
			}
		}
	}
	return sum
}

// String returns the counts that do not round to zero, the largest first.
func (c counts) String() string {
	names := slices.SortedFunc(maps.Keys(c), func(a, b string) int {
		return int(c[b]*1000) - int(c[a]*1000)
	})
	var texts []string
	for _, name := range names {
		if text := decimals(c[name]); text != "0" {
			texts = append(texts, text+" "+name)
		}
	}
	if len(texts) == 0 {
		return "none"
	}
	return strings.Join(texts, ", ")
}

// decimals returns a number with two significant digits, or all of it if it is large.
func decimals(number float64) string {
	switch {
	case number < 0.005:
		return "0"
	case number < 1:
		return fmt.Sprintf("%.2f", number)
	case number < 100:
		return fmt.Sprintf("%.1f", number)
	}
	return fmt.Sprintf("%.0f", number)
}
