package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/internal/agent"
	"github.com/krake-observer/krake-observer/internal/habitat"
	"github.com/krake-observer/krake-observer/internal/supported"
	"github.com/krake-observer/krake-observer/internal/webhook"
)

// notes is what helm install prints.
const notes = `Krake Observer is installed: overlay {{ .Values.overlay }}.

Applications are ConfigMaps with the annotation krake.dev/application: v1. Before you uninstall
the chart, delete them, and run kubectl krake uninstall --check.
`

// checks has no object. Helm creates the namespace of a release, and the chart these two.
const checks = `{{- if has .Release.Namespace (list "krake-agents" "krake-system") }}
{{- fail "the chart creates the namespaces krake-agents and krake-system: choose another one for the release" }}
{{- end }}
`

// isChartVersion matches what Helm accepts as the version of a chart.
var isChartVersion = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

func (c *chart) description(version string) (string, error) {
	version = strings.TrimPrefix(version, "v")
	if !isChartVersion.MatchString(version) {
		return "", fmt.Errorf("--chart-version: %q has to be a version, as v1.2.3", version)
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion":  "v2",
		"name":        "krake-observer",
		"type":        "application",
		"version":     version,
		"appVersion":  version,
		"kubeVersion": ">=" + supported.Oldest + ".0-0",
		"description": "Webhook and agent of Krake Observer. Generated from manifests/overlays.",
		"home":        "https://github.com/krake-observer/krake-observer",
	})
	return string(text), err
}

func (c *chart) values() (string, error) {
	image, err := yaml.Marshal(c.image)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# What to install, one of: %s.\noverlay: default\n", strings.Join(chartOverlays(), ", "))
	b.WriteString("# A priority level for the requests of agents to the API server.\nflowSchema: false\n")
	fmt.Fprintf(&b, "# The image of all components, as NAME:TAG or NAME@DIGEST.\nimage: %s", image)
	for _, name := range c.components {
		fmt.Fprintf(&b, "\n%s:\n", name)
		b.WriteString("  # How many Pods; null: as in the overlay.\n  replicas: null\n")
		b.WriteString("  # Requests and limits of the container; null: as in the overlay.\n  resources: null\n")
		b.WriteString("  # The limit of the Go runtime, less than that of the container; null: as in the overlay.\n  goMemoryLimit: null\n")
		b.WriteString("  # Further flags, as --log-level=debug: see docs/images.md.\n  extraArgs: []\n")
	}
	return b.String(), nil
}

// extraFlags are the flags that values may set. Webhook and agent have to agree about some others, and
// roles, Services and probes of the overlays about the rest.
var extraFlags = []string{
	"concurrency", "guard-break-glass-groups", "guard-break-glass-users", "heartbeat-interval",
	"leader-elect-lease-duration", "leader-elect-renew-deadline", "leader-elect-retry-period",
	"log-format", "log-level", "max-hold", "resync-period", "shards", "shutdown-failure-strategy", "shutdown-grace-time", "shutdown-retry-count",
}

// schema returns the JSON schema of the values.
func (c *chart) schema() (string, error) {
	object := func(properties map[string]any) map[string]any {
		return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	}
	properties := map[string]any{
		"overlay":    map[string]any{"enum": chartOverlays()},
		"flowSchema": map[string]any{"type": "boolean"},
		"image":      map[string]any{"type": "string", "minLength": 1},
		"global":     map[string]any{"type": "object"}, // of a chart around this one
	}
	for _, name := range c.components {
		pattern := "^--(" + strings.Join(flagsOf(name), "|") + ")(=.*)?$"
		properties[name] = object(map[string]any{
			"replicas":      map[string]any{"type": []string{"integer", "null"}, "minimum": 0},
			"resources":     map[string]any{"type": []string{"object", "null"}},
			"goMemoryLimit": map[string]any{"type": []string{"string", "null"}, "pattern": "^[0-9]+(B|KiB|MiB|GiB)$"},
			"extraArgs":     map[string]any{"type": "array", "items": map[string]any{"type": "string", "pattern": pattern}},
		})
	}
	schema := object(properties)
	schema["$schema"] = "http://json-schema.org/draft-07/schema#"
	text, err := json.MarshalIndent(schema, "", "  ")
	return string(text) + "\n", err
}

// flagsOf returns the extra flags that a component has.
func flagsOf(name string) []string {
	program := map[string]interface{ AddFlags(*pflag.FlagSet) }{
		"agent": new(agent.Options), "habitat": new(habitat.Options), "webhook": new(webhook.Options),
	}[name]
	flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
	program.AddFlags(flags)
	return slices.DeleteFunc(slices.Clone(extraFlags), func(flag string) bool { return flags.Lookup(flag) == nil })
}
