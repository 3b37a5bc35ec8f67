package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/krake-observer/krake-observer/internal/agent/telemetry"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/status"
	"github.com/krake-observer/krake-observer/test/kit"
)

const root = "../.."

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	kit.Must(t, err)
	return string(text)
}

// The page is up to date with the code.
func TestReferenceIsOfThisCode(t *testing.T) {
	var now strings.Builder
	kit.Must(t, write(&now, root))
	if diff := cmp.Diff(read(t, "docs/reference.md"), now.String()); diff != "" {
		t.Errorf("docs/reference.md is not what the code says: make reference (-written +said):\n%s", diff)
	}
}

// speaking lists the folders whose code sets conditions, reasons, Events and states.
func speaking() []string {
	return []string{
		"pkg/application", "pkg/reconcile", "pkg/status", "internal/agent", "internal/agent/guard", "internal/agent/hub", "internal/agent/target", "internal/agent/telemetry",
		"internal/habitat", "internal/hooks", "internal/right", "internal/discovery", "internal/certificates", "internal/webhook",
	}
}

// silent lists words of the code that look like such names but are none.
func silent() []string {
	return []string{
		"Acquire", "Reconcile", // actions of an Event
		"Acting", "HubBack", "HubLost", "TargetBack", "TargetLost", // in the log
		"CERTIFICATE", // of PEM
		"Name", "Ref", // ends of fields
		"Allow", "Connection", // headers
		"Application", "Applications", "CLUSTER", "ClusterRole", "CustomResourceDefinition", "Habitat", "Habitats", "JSON", // names of things
		"RECONCILING", // of Habitats, between two states of the Application
	}
}

var looksLikeReason = regexp.MustCompile(`^[A-Z][A-Za-z]+$|^[A-Z]+(_[A-Z]+)+$`)

// The reference has every state, condition and reason that the code has, also the
// reasons of Events.
func TestNothingElseIsSaid(t *testing.T) {
	told := toldWords()
	s := newSource(root)
	for _, folder := range speaking() {
		texts, err := s.textsIn(folder)
		kit.Must(t, err)
		for text, at := range texts {
			if looksLikeReason.MatchString(text) && !told[text] && !isKind(text) && !slices.Contains(silent(), text) {
				t.Errorf("%s: %q looks like a condition, a reason or a state, and is in no table: add it to that of its package "+
					"(status.Conditions, status.Actions, application.States), or to silent", at, text)
			}
		}
	}
}

// toldWords returns the words of the reference.
func toldWords() map[string]bool {
	told := map[string]bool{}
	for _, said := range slices.Concat(status.Conditions(), habitatSaid()) {
		told[said.Condition], told[said.Reason] = true, true
	}
	for _, event := range slices.Concat(telemetry.EventMeanings(), habitatEvents()) {
		told[event.Reason] = true
	}
	for _, state := range application.States() {
		told[string(state)] = true
	}
	told["NotFound"] = true    // the health of a missing object
	told["ObserveMode"] = true // the condition Drifted of single objects
	return told
}

// isKind reports whether Kubernetes has a kind of that name.
func isKind(name string) bool {
	for known := range scheme.Scheme.AllKnownTypes() {
		if known.Kind == name {
			return true
		}
	}
	return false
}

// The search finds the words.
func TestWordsAreFound(t *testing.T) {
	texts, err := newSource(root).textsIn("pkg/status")
	kit.Must(t, err)
	for _, word := range []string{"CompetingWriter", "InvalidToscaManifest", "DriftReverted"} {
		if _, found := texts[word]; !found || !looksLikeReason.MatchString(word) {
			t.Errorf("%s was not found in pkg/status", word)
		}
	}
}

// The plugin's commands are those that its main builds.
func TestThePluginIsWhole(t *testing.T) {
	kit.Long(t, "it links the plugin")
	output, err := exec.CommandContext(t.Context(), "go", "run", "-C", root, "./cmd/kubectl-krake", "--help").Output()
	kit.Must(t, err)
	_, list, _ := strings.Cut(string(output), "Available Commands:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	var has, told []string
	for line := range strings.Lines(list) {
		name, short, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name != "help" && name != "completion" {
			has = append(has, name+": "+strings.TrimSpace(short))
		}
	}
	for _, command := range plugin().Commands() {
		told = append(told, command.Name()+": "+command.Short)
	}
	slices.Sort(told)
	if diff := cmp.Diff(has, told); diff != "" || len(has) < 10 {
		t.Errorf("commands (-of the program +that are told):\n%s", diff)
	}
}
