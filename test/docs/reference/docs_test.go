package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/krake-observer/krake-observer/internal/agent/telemetry"
	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/manifests"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/test/kit"
)

// sectionOf returns the text below a heading, up to the next one of its level.
func sectionOf(t *testing.T, text, heading string) string {
	t.Helper()
	_, below, found := strings.Cut(text, "\n"+heading+"\n")
	if !found {
		t.Fatalf("there is no heading %q", heading)
	}
	level, _, _ := strings.Cut(heading, " ")
	section, _, _ := strings.Cut(below, "\n"+level+" ")
	return section
}

// rowsOf returns the cells of the rows of tables, without the heads.
func rowsOf(text string) [][]string {
	var rows [][]string
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		isHead := i+1 < len(lines) && strings.HasPrefix(lines[i+1], "|---")
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || isHead {
			continue
		}
		var cells []string
		for cell := range strings.SplitSeq(strings.Trim(strings.ReplaceAll(line, `\|`, "\x00"), "|"), "|") {
			cells = append(cells, strings.TrimSpace(strings.ReplaceAll(cell, "\x00", "|")))
		}
		rows = append(rows, cells)
	}
	return rows
}

// first returns the first cells of rows, without their marks.
func first(rows [][]string) []string {
	var cells []string
	for _, row := range rows {
		cells = append(cells, strings.Trim(row[0], "`"))
	}
	return cells
}

// same fails if two sets differ, or if one has an element twice.
func same(t *testing.T, what string, there, told []string) {
	t.Helper()
	slices.Sort(there)
	slices.Sort(told)
	if diff := cmp.Diff(there, told); diff != "" {
		t.Errorf("%s (-there are +are told of):\n%s", what, diff)
	}
}

var (
	reasonHeading  = regexp.MustCompile("^### `([A-Za-z_]+)`$")
	conditionState = regexp.MustCompile("`([A-Za-z]+)` (True|False|Unknown)")
)

// pairsOf returns the conditions of a text, as "Ready is False for Held": those after
// "Conditions:" below a reason's heading, and the rows of tables.
func pairsOf(text string) []string {
	var pairs []string
	reason := ""
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if heading := reasonHeading.FindStringSubmatch(line); heading != nil {
			reason = heading[1]
		}
		if list, ok := strings.CutPrefix(line, "Conditions: "); ok {
			for _, found := range conditionState.FindAllStringSubmatch(list, -1) {
				pairs = append(pairs, fmt.Sprintf("%s is %s for %s", found[1], found[2], reason))
			}
		}
	}
	for _, row := range rowsOf(text) {
		if len(row) == 4 {
			pairs = append(pairs, fmt.Sprintf("%s is %s for %s", strings.Trim(row[0], "`"), row[1], strings.Trim(row[2], "`")))
		}
	}
	return pairs
}

func textsOf(all []status.Said) []string {
	var pairs []string
	for _, said := range all {
		pairs = append(pairs, fmt.Sprintf("%s is %s for %s", said.Condition, said.Status, said.Reason))
	}
	return pairs
}

// Each condition with its reason has an entry, and so has each Event and each alert; no
// entry is obsolete.
func TestTroubleshooting(t *testing.T) {
	page := read(t, "docs/troubleshooting.md")
	same(t, "conditions", textsOf(status.Conditions()), pairsOf(sectionOf(t, page, "## By reason")))
	same(t, "conditions of Habitats", textsOf(habitatSaid()), pairsOf(sectionOf(t, page, "## Habitats")))
	var events []string
	for _, event := range slices.Concat(telemetry.EventMeanings(), habitatEvents()) {
		events = append(events, event.Reason)
	}
	same(t, "Events", events, first(rowsOf(sectionOf(t, page, "## Events"))))
	same(t, "alerts", alerts(t), first(rowsOf(sectionOf(t, page, "## Alerts"))))
}

// The table of states in docs/concepts.md has every state, and no other.
func TestStates(t *testing.T) {
	var states []string
	for _, state := range application.States() {
		states = append(states, string(state))
	}
	same(t, "states", states, first(rowsOf(sectionOf(t, read(t, "docs/concepts.md"), "## The life of an Application"))))
}

var (
	quotation = regexp.MustCompile("(?s)\n```text\n(.*?)\n```")
	moment    = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:]+Z`)
	played    = regexp.MustCompile(`troubleshooting-[a-z-]+`)
)

// Each quoted message is real: a session has read it, in its own namespace.
func TestQuotations(t *testing.T) {
	var sessions strings.Builder
	files, err := filepath.Glob(filepath.Join(root, "test", "kubectl", "testdata", "troubleshooting-*.txtar"))
	kit.Must(t, err)
	for _, file := range files {
		sessions.WriteString(read(t, strings.TrimPrefix(file, root)))
	}
	said := played.ReplaceAllString(sessions.String(), "shop")
	found := quotation.FindAllStringSubmatch(read(t, "docs/troubleshooting.md"), -1)
	for _, quoted := range found {
		text := moment.ReplaceAllString(strings.ReplaceAll(quoted[1], "\n", " "), "TIME")
		if !strings.Contains(said, text) {
			t.Errorf("no session of test/kubectl reads %q", text)
		}
	}
}

// alerts returns the names of the shipped alerts.
func alerts(t *testing.T) []string {
	t.Helper()
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert string }
		}
	}
	kit.Must(t, yaml.Unmarshal([]byte(read(t, "manifests/monitoring/alerts.yaml")), &rules))
	var names []string
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			names = append(names, rule.Alert)
		}
	}
	return names
}

var (
	metricWord   = regexp.MustCompile(`krake_[a-z_]+`)
	metricLabels = regexp.MustCompile(`(krake_[a-z_]+)\{([^}]*)\}`)
	metricSuffix = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// The page describes each metric and each alert, with its labels; queries use only
// existing metrics and labels.
func TestMetricsAndAlerts(t *testing.T) {
	page := read(t, "docs/metrics-and-alerts.md")
	there, err := metricsOf(root)
	kit.Must(t, err)
	rows := slices.Concat(rowsOf(sectionOf(t, page, "## Of the agent")), rowsOf(sectionOf(t, page, "## Of the webhook")))
	same(t, "metrics", slices.Collect(maps.Keys(there)), first(rows))
	same(t, "alerts", alerts(t), first(rowsOf(sectionOf(t, page, "## Alerts"))))
	for _, row := range rows {
		for _, label := range there[strings.Trim(row[0], "`")].labels {
			if !strings.Contains(row[1], "`"+label+"`") {
				t.Errorf("%s: label %s is not told of", row[0], label)
			}
		}
		if !strings.Contains(row[2], "`") {
			t.Errorf("%s has no query", row[0])
		}
	}
	for _, word := range metricWord.FindAllString(page, -1) {
		if _, ok := there[metricSuffix.ReplaceAllString(word, "")]; !ok {
			t.Errorf("there is no metric %s", word)
		}
	}
	for _, query := range metricLabels.FindAllStringSubmatch(page, -1) {
		for matcher := range strings.SplitSeq(query[2], ",") {
			label := strings.TrimRight(matcher[:strings.IndexAny(matcher, "=!")], " ")
			if !slices.Contains(there[metricSuffix.ReplaceAllString(query[1], "")].labels, label) {
				t.Errorf("%s has no label %s", query[0], label)
			}
		}
	}
}

// The page describes each shipped role and policy, with its purpose.
func TestPermissions(t *testing.T) {
	page := read(t, "docs/permissions.md")
	section := sectionOf(t, page, "## The roles")
	roles, policies, _ := strings.Cut(section, "\n| policy |")
	found, err := rolesOf()
	kit.Must(t, err)
	titles := map[string]bool{"Role krake-agent-CLUSTER": true} // the name in overlays/spoke
	for _, one := range found {
		titles[one.title()] = true
	}
	same(t, "roles", slices.Collect(maps.Keys(titles)), first(rowsOf(roles)))
	kept, err := namesOf("ValidatingAdmissionPolicy")
	kit.Must(t, err)
	same(t, "policies", kept, first(rowsOf("| policy |"+policies)))
}

// The recommended requests and limits are the shipped ones.
func TestSizing(t *testing.T) {
	for _, file := range []string{"base/webhook", "base/agent", "components/habitat/controller"} {
		text, err := manifests.Files.ReadFile(file + "/deployment.yaml")
		kit.Must(t, err)
		var deployment appsv1.Deployment
		kit.Must(t, yaml.Unmarshal(text, &deployment))
		container := deployment.Spec.Template.Spec.Containers[0]
		want := fmt.Sprintf("| `manifests/%s` | %s | %s | %s | %s |", file,
			container.Resources.Requests.Cpu(), container.Resources.Requests.Memory(),
			container.Resources.Limits.Cpu(), container.Resources.Limits.Memory())
		if !strings.Contains(read(t, "docs/scale.md"), want) {
			t.Errorf("docs/scale.md does not have what is shipped: %s", want)
		}
	}
}
