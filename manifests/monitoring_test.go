package manifests

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/test/kit"
)

// series are the labels of a metric, by each of its names in expressions: a histogram has
// three.
type series map[string][]string

// foreign are the metrics of the libraries that we use, with their labels.
func foreign() series {
	return series{
		"kube_lease_renew_time":              {"lease"},
		"workqueue_depth":                    {"name", "controller", "priority"},
		"controller_runtime_reconcile_total": {"controller", "result"},
	}
}

// whereLabels returns the labels that Prometheus adds from the place of a metric.
func whereLabels() []string { return []string{"pod", "namespace", "instance", "job"} }

// ourMetrics reads the metrics of the commands from the sources.
func ourMetrics(t *testing.T) series {
	t.Helper()
	found := series{}
	for _, folder := range []string{"agent/telemetry", "agent/guard", "webhook", "certificates"} {
		files, err := filepath.Glob(filepath.Join("..", "internal", folder, "*.go"))
		kit.Must(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			kit.Must(t, err)
			ast.Inspect(parsed, found.add)
		}
	}
	return found
}

// add adds a metric that is created by a call of package prometheus.
func (s series) add(node ast.Node) (goOn bool) {
	call, ok := node.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return true
	}
	function, ok := call.Fun.(*ast.SelectorExpr)
	name := nameOf(call.Args[0])
	if !ok || !strings.HasPrefix(function.Sel.Name, "New") || !strings.HasPrefix(name, "krake_") {
		return true
	}
	labels := []string{}
	for _, argument := range call.Args[1:] {
		labels = append(labels, textsOf(argument)...)
	}
	if !strings.HasPrefix(function.Sel.Name, "NewHistogram") {
		s[name] = labels
		return true
	}
	s[name+"_sum"], s[name+"_count"] = labels, labels
	s[name+"_bucket"] = append([]string{"le"}, labels...)
	return true
}

// nameOf returns the name of a metric: a text, or the field Name of its options.
func nameOf(argument ast.Expr) string {
	options, ok := argument.(*ast.CompositeLit)
	if !ok {
		return textOf(argument)
	}
	for _, element := range options.Elts {
		field, ok := element.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		if key, ok := field.Key.(*ast.Ident); ok && key.Name == "Name" {
			return textOf(field.Value)
		}
	}
	return ""
}

func textsOf(list ast.Expr) []string {
	elements, ok := list.(*ast.CompositeLit)
	if !ok {
		return nil
	}
	var texts []string
	for _, element := range elements.Elts {
		texts = append(texts, textOf(element))
	}
	return texts
}

func textOf(expression ast.Expr) string {
	literal, ok := expression.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	text, err := strconv.Unquote(literal.Value)
	if err != nil {
		return ""
	}
	return text
}

var (
	quoted   = regexp.MustCompile(`"[^"]*"`)
	duration = regexp.MustCompile(`\[[^]]*\]`)
	grouping = regexp.MustCompile(`\b(?:by|without|on|ignoring)\s*\(([^)]*)\)`)
	selector = regexp.MustCompile(`([a-zA-Z_:][a-zA-Z0-9_:]*)?\s*\{([^}]*)\}`)
	word     = regexp.MustCompile(`[a-zA-Z_:][a-zA-Z0-9_:]*(?:\s*\()?`)
)

// check returns an error for an expression of PromQL with an unknown metric, or with a label
// that none of its metrics has. It parses only the part of the language that our expressions
// use.
func (s series) check(expression string) error {
	text := duration.ReplaceAllString(quoted.ReplaceAllString(expression, ""), "")
	for _, pair := range []string{"()", "{}", "[]"} {
		if strings.Count(text, pair[:1]) != strings.Count(text, pair[1:]) {
			return fmt.Errorf("%s: a bracket is missing", expression)
		}
	}
	possible := whereLabels()
	metrics := metricsOf(text)
	for _, metric := range metrics {
		labels, ok := s[metric]
		if !ok {
			return fmt.Errorf("%s: there is no metric %s", expression, metric)
		}
		possible = append(possible, labels...)
	}
	if len(metrics) == 0 {
		return fmt.Errorf("%s: it names no metric", expression)
	}
	for _, found := range selector.FindAllStringSubmatch(text, -1) {
		if label := strange(found[2], s[found[1]]); label != "" {
			return fmt.Errorf("%s: %s has no label %s", expression, found[1], label)
		}
	}
	for _, found := range grouping.FindAllStringSubmatch(text, -1) {
		if label := strange(found[1], possible); label != "" {
			return fmt.Errorf("%s: there is no label %s", expression, label)
		}
	}
	return nil
}

// metricsOf returns the names in an expression that are neither functions nor operators nor
// labels.
func metricsOf(text string) []string {
	bare := selector.ReplaceAllString(grouping.ReplaceAllString(text, ""), "$1")
	var names []string
	for _, name := range word.FindAllString(bare, -1) {
		if !strings.HasSuffix(name, "(") && !slices.Contains([]string{"and", "or", "unless", "sum", "max", "min"}, name) {
			names = append(names, name)
		}
	}
	return names
}

// strange returns the first of the labels, or of the matchers of labels, that is unknown.
func strange(list string, labels []string) string {
	for label := range strings.SplitSeq(list, ",") {
		label = strings.TrimRight(strings.TrimSpace(label), "=!~ ")
		if !slices.Contains(labels, label) {
			return label
		}
	}
	return ""
}

// expressions returns those of alerts and dashboard, by their places.
func expressions(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	var alerts struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	parse(t, "monitoring/alerts.yaml", &alerts, yaml.Unmarshal)
	for _, group := range alerts.Groups {
		for _, rule := range group.Rules {
			found["alert "+rule.Alert] = rule.Expr
		}
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, RefID string }
		}
	}
	parse(t, "monitoring/dashboard.json", &dashboard, func(text []byte, into any, _ ...yaml.JSONOpt) error { return json.Unmarshal(text, into) })
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			found["panel "+panel.Title+" "+target.RefID] = target.Expr
		}
	}
	return found
}

func parse(t *testing.T, file string, into any, unmarshal func([]byte, any, ...yaml.JSONOpt) error) {
	t.Helper()
	text, err := os.ReadFile(file)
	kit.Must(t, err)
	if err := unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// Dashboard and alerts use only existing metrics and labels, and each of our metrics is in one
// of them.
func TestMonitoring(t *testing.T) {
	ours := ourMetrics(t)
	all := foreign()
	maps.Copy(all, ours)
	texts := expressions(t)
	if len(ours) < 15 || len(texts) < 25 {
		t.Fatalf("%d names of metrics and %d expressions: that are too few for all to have been read", len(ours), len(texts))
	}
	var shown strings.Builder
	for where, expression := range texts {
		shown.WriteString(expression + "\n")
		if err := all.check(expression); err != nil {
			t.Errorf("%s: %v", where, err)
		}
	}
	for name := range ours {
		base := regexp.MustCompile(`_(sum|count|bucket)$`).ReplaceAllString(name, "")
		if !strings.Contains(shown.String(), base) {
			t.Errorf("nobody looks at %s", name)
		}
	}
}
