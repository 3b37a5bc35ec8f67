package main

import (
	"go/ast"
	"maps"
	"slices"
	"strings"
)

// metric is a metric of a command.
type metric struct {
	by, name, kind, help string
	labels               []string
}

// metricsOf reads the metrics from the sources, by name.
func metricsOf(root string) (map[string]metric, error) {
	found := map[string]metric{}
	for folder, by := range map[string]string{
		"internal/agent/telemetry": "agent", "internal/hooks": "agent, with `--hooks`",
		"internal/agent/guard": "agent, with `--guard`",
		"internal/webhook":     "webhook", "internal/pki": "webhook, and agent with `--guard`",
	} {
		files, err := newSource(root).parse(folder)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			ast.Inspect(file, func(node ast.Node) bool {
				if made, ok := metricOf(node); ok {
					made.by = by
					found[made.name] = made
				}
				return true
			})
		}
	}
	return found, nil
}

// metricOf reads a call that makes a metric.
func metricOf(node ast.Node) (metric, bool) {
	call, ok := node.(*ast.CallExpr)
	if !ok || len(call.Args) == 0 {
		return metric{}, false
	}
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !strings.HasPrefix(function.Sel.Name, "New") {
		return metric{}, false
	}
	made := metric{kind: strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(function.Sel.Name, "New"), "Vec"))}
	arguments := call.Args
	if made.kind == "desc" { // the description of a metric that is computed on request
		made.kind = "gauge"
		made.name = textOf(arguments[0])
		if len(arguments) > 1 {
			made.help = textOf(arguments[1])
		}
	} else {
		fields := fieldsOf(arguments[0])
		made.name = textOf(fields["Name"])
		made.help = textOf(fields["Help"])
	}
	for _, argument := range arguments[1:] {
		if list, ok := argument.(*ast.CompositeLit); ok {
			for _, element := range list.Elts {
				label := textOf(element)
				made.labels = append(made.labels, label)
			}
		}
	}
	return made, strings.HasPrefix(made.name, "krake_")
}

// fieldsOf returns the fields of options.
func fieldsOf(expression ast.Expr) map[string]ast.Expr {
	fields := map[string]ast.Expr{}
	literal, ok := expression.(*ast.CompositeLit)
	if !ok {
		return fields
	}
	for _, element := range literal.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			if name, ok := pair.Key.(*ast.Ident); ok {
				fields[name.Name] = pair.Value
			}
		}
	}
	return fields
}

func metrics(p *page, root string) error {
	found, err := metricsOf(root)
	if err != nil {
		return err
	}
	p.section("Metrics", "At `:8443/metrics`, over TLS, for clients that may get `/metrics`. Their meaning, and queries: [metrics-and-alerts.md](metrics-and-alerts.md).")
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(found)) {
		m := found[name]
		rows = append(rows, []string{code(name), m.kind, codes(m.labels), m.by, m.help})
	}
	p.table([]string{"metric", "type", "labels", "of", "help"}, rows)
	return nil
}
