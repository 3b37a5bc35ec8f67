package main

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/test/kit"
)

var (
	// literal is what has no names of its own: a text, or a range.
	literal = regexp.MustCompile(`"[^"]*"|\[[^]]*\]`)
	// word is a name, with the bracket that makes it a function.
	word = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*(?:\s*\()?`)
)

// foreign are the metrics of the libraries that we use, with their labels.
var foreign = map[string]metric{
	"kube_lease_renew_time":              {labels: []string{"lease"}},
	"workqueue_depth":                    {labels: []string{"name", "controller", "priority"}},
	"controller_runtime_reconcile_total": {labels: []string{"controller", "result"}},
}

// expressions returns those of alerts and dashboard.
func expressions(t *testing.T) []string {
	t.Helper()
	type query struct{ Expr string }
	var alerts struct {
		Groups []struct{ Rules []query }
	}
	var dashboard struct {
		Panels []struct{ Targets []query }
	}
	kit.Must(t, yaml.Unmarshal([]byte(read(t, "manifests/monitoring/alerts.yaml")), &alerts))
	kit.Must(t, yaml.Unmarshal([]byte(read(t, "manifests/monitoring/dashboard.json")), &dashboard))
	var found []string
	for _, group := range alerts.Groups {
		for _, rule := range group.Rules {
			found = append(found, rule.Expr)
		}
	}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			found = append(found, target.Expr)
		}
	}
	return found
}

// Dashboard and alerts use only existing metrics and labels, and each metric is in one of them,
// except that of the endpoint of hooks.
func TestMonitoring(t *testing.T) {
	ours, err := metricsOf(root)
	kit.Must(t, err)
	all := maps.Clone(ours)
	maps.Copy(all, foreign)
	delete(ours, "krake_agent_hook_requests_total")
	texts := expressions(t)
	if len(ours) < 15 || len(texts) < 25 {
		t.Fatalf("%d metrics and %d expressions: that are too few for all to have been read", len(ours), len(texts))
	}
	for _, text := range texts {
		known := []string{"and", "or", "unless", "by", "sum", "max", "min", "le", "pod", "namespace", "instance", "job"}
		var strange []string
		used := 0
		for _, name := range word.FindAllString(literal.ReplaceAllString(text, ""), -1) {
			base := metricSuffix.ReplaceAllString(name, "")
			m, isMetric := all[base]
			switch {
			case isMetric && (base == name) == (m.kind != "histogram"):
				used++
				known = append(known, m.labels...)
				delete(ours, base)
			case !strings.HasSuffix(name, "("):
				strange = append(strange, name)
			}
		}
		strange = slices.DeleteFunc(strange, func(name string) bool { return slices.Contains(known, name) })
		for _, pair := range []string{"()", "{}", "[]"} {
			if strings.Count(text, pair[:1]) != strings.Count(text, pair[1:]) {
				t.Errorf("%s: a bracket is missing", text)
			}
		}
		if used == 0 || len(strange) > 0 {
			t.Errorf("%s: it uses %d metrics, and knows nothing of %v", text, used, strange)
		}
	}
	for name := range ours {
		t.Errorf("nobody looks at %s", name)
	}
}
