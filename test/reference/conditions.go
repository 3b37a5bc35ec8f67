package main

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/status"
)

func states(p *page, root string) error {
	p.section("States", "The label `"+application.StateLabel+"`, and `state` in the status. Of several objects the worst counts.")
	var rows [][]string
	for _, state := range application.States() {
		rows = append(rows, []string{code(string(state.State)), state.Meaning})
	}
	p.table([]string{"state", "meaning"}, rows)
	p.text("\n`kubectl krake get` has these besides, which are stored nowhere:\n")
	found, err := statesOfPlugin(root)
	if err != nil {
		return err
	}
	rows = nil
	for _, name := range slices.Sorted(maps.Keys(found)) {
		rows = append(rows, []string{code(found[name]), pluginStateMeanings()[name]})
	}
	p.table([]string{"state", "meaning"}, rows)
	return nil
}

// pluginStateMeanings are those of the constants of internal/cli that name states.
func pluginStateMeanings() map[string]string {
	return map[string]string{
		"stateNotAdmitted":      "the webhook has not seen the Application, so that no agent does",
		"stateAgentUnreachable": "its agent does not renew its Lease on the hub, so that what is stored may be outdated",
		"statePending":          "its agent has not looked at it yet",
		"stateDeleted":          "with `-w`: it is gone",
		"stateUnknownFormat":    "it is of a format version that this plugin does not know",
	}
}

// statesOfPlugin gives the states of the plugin by its constants.
func statesOfPlugin(root string) (map[string]string, error) {
	constants, err := newSource(root).constants("internal/cli")
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for name, of := range constants {
		if strings.HasPrefix(name, "state") {
			found[name] = valueOf(of, false)
		}
	}
	return found, sameKeys("states of internal/cli", found, pluginStateMeanings())
}

// habitatSaid are the conditions of Habitats. Ready has those of the Application besides.
func habitatSaid() []status.Said {
	const accepted, file = "Accepted", "PeerFile"
	is, not, unknown := metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	return []status.Said{
		{Condition: accepted, Status: not, Reason: "UnknownVersion", Meaning: "there is no controller for its customVersion"},
		{Condition: accepted, Status: not, Reason: "ValidationFailed", Meaning: "it is not legal: the message names each field"},
		{Condition: accepted, Status: not, Reason: "SecretMissing", Meaning: "a Secret that it names is not there"},
		{Condition: accepted, Status: not, Reason: "NameTaken", Meaning: "the ConfigMap of its Application belongs to somebody else"},
		{Condition: accepted, Status: not, Reason: "Going", Meaning: "the Application of a former Habitat of the name is still going"},
		{Condition: accepted, Status: not, Reason: "Immutable", Meaning: "it asks for what its workload cannot become"},
		{Condition: accepted, Status: not, Reason: "Refused", Meaning: "the API server, or a webhook there, refuses the Application"},
		{Condition: accepted, Status: is, Reason: "Accepted", Meaning: "it is carried out as it is now"},
		{Condition: "Ready", Status: not, Reason: "NotAccepted", Meaning: "there is no Application"},
		{Condition: "Ready", Status: unknown, Reason: "Unreadable", Meaning: "the status of its Application cannot be read"},
		{Condition: "Ready", Status: not, Reason: "Pending", Meaning: "the agent has not carried out the Application yet"},
		{Condition: file, Status: not, Reason: "Missing", Meaning: "there is no peer file: the message says why"},
		{Condition: file, Status: is, Reason: "NoPeer", Meaning: "there is a peer file, and no Pod runs that could be the peer"},
		{Condition: file, Status: is, Reason: "Chosen", Meaning: "a Pod that runs is in the file"},
	}
}

func conditions(p *page, _ string) error {
	p.section("Conditions", "Of an Application, in the document `status`. Objects have the reasons of `Reconciled` as well. What to do: [troubleshooting.md](troubleshooting.md).")
	conditionTable(p, status.Conditions())
	p.text("\nOf a Habitat. Its `Ready` has the reasons of its Application's besides:\n")
	conditionTable(p, habitatSaid())
	return nil
}

func conditionTable(p *page, all []status.Said) {
	var rows [][]string
	for _, said := range all {
		rows = append(rows, []string{code(said.Condition), string(said.Status), code(said.Reason), said.Meaning})
	}
	p.table([]string{"condition", "status", "reason", "meaning"}, rows)
}
