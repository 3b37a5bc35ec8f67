package main

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/pkg/application"
)

func states(p *page, root string) error {
	p.section("States", "The label `"+application.StateLabel+"`, and `state` in the status. Of several objects the worst counts.")
	var rows [][]string
	for _, state := range application.States() {
		rows = append(rows, []string{code(string(state)), stateMeanings()[state]})
	}
	p.table([]string{"state", "meaning"}, rows)
	p.text("\n`kubectl krake get` has these besides, which are stored nowhere:\n")
	constants, err := newSource(root).constants("internal/cli/view")
	if err != nil {
		return err
	}
	rows = nil
	for _, one := range []struct{ name, meaning string }{
		{"StateAgentUnreachable", "its agent does not renew its Lease on the hub, so the stored status may be outdated"},
		{"StateDeleted", "with `-w`: it is gone"},
		{"StateNotAdmitted", "the webhook has not admitted the Application, so no agent sees it"},
		{"StatePending", "its agent has not reported on it yet"},
		{"StateUnknownFormat", "it has a format version that this plugin does not know"},
	} {
		of, ok := constants[one.name]
		if !ok {
			return fmt.Errorf("internal/cli/view has no state %s any more", one.name)
		}
		rows = append(rows, []string{code(valueOf(of, false)), one.meaning})
	}
	p.table([]string{"state", "meaning"}, rows)
	return nil
}

// habitatSaid returns the conditions of Habitats. Ready also has those of the
// Application.
func habitatSaid() []status.Said {
	const accepted, file = "Accepted", "PeerFileReady"
	is, not, unknown := metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	return []status.Said{
		{Condition: accepted, Status: not, Reason: "UnknownVersion", Meaning: "there is no controller for its customVersion"},
		{Condition: accepted, Status: not, Reason: "ValidationFailed", Meaning: "it is invalid: the message names each field"},
		{Condition: accepted, Status: not, Reason: "SecretNotFound", Meaning: "a Secret that it names does not exist"},
		{Condition: accepted, Status: not, Reason: "NameConflict", Meaning: "the ConfigMap of its Application belongs to another owner"},
		{Condition: accepted, Status: not, Reason: "PreviousTerminating", Meaning: "the Application of a former Habitat of the name is still being deleted"},
		{Condition: accepted, Status: not, Reason: "ImmutableField", Meaning: "its workload cannot change in the requested way"},
		{Condition: accepted, Status: not, Reason: "Refused", Meaning: "the API server, or a webhook there, refuses the Application"},
		{Condition: accepted, Status: is, Reason: "Accepted", Meaning: "the agent carries out its present spec"},
		{Condition: "Ready", Status: not, Reason: "NotAccepted", Meaning: "there is no Application"},
		{Condition: "Ready", Status: unknown, Reason: "Unreadable", Meaning: "the status of its Application cannot be read"},
		{Condition: "Ready", Status: not, Reason: "Pending", Meaning: "the agent has not carried out the Application yet"},
		{Condition: file, Status: not, Reason: "NotFound", Meaning: "there is no peer file: the message says why"},
		{Condition: file, Status: is, Reason: "NoPeer", Meaning: "there is a peer file, but no running Pod can be the peer"},
		{Condition: file, Status: is, Reason: "PeerChosen", Meaning: "the file has the address of a running Pod"},
	}
}

func conditions(p *page, _ string) error {
	p.section("Conditions", "Of an Application, in the document `status`. Objects also have the reasons of `Reconciled`. For the remedies see [troubleshooting.md](troubleshooting.md).")
	conditionTable(p, status.Conditions())
	p.text("\nOf a Habitat. Its `Ready` also has the reasons of its Application's `Ready`:\n")
	conditionTable(p, habitatSaid())
	return nil
}

// conditionTable has a row for each reason with its meaning.
func conditionTable(p *page, all []status.Said) {
	var rows [][]string
	for _, said := range all {
		condition := code(said.Condition) + " " + string(said.Status)
		at := slices.IndexFunc(rows, func(row []string) bool { return row[0] == code(said.Reason) && row[2] == said.Meaning })
		if at >= 0 {
			rows[at][1] += ", " + condition
			continue
		}
		rows = append(rows, []string{code(said.Reason), condition, said.Meaning})
	}
	p.table([]string{"reason", "conditions", "meaning"}, rows)
}
