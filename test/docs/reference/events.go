package main

import (
	"github.com/krake-observer/krake-observer/internal/agent/telemetry"
)

// habitatEvents returns the Events of krake-habitat.
func habitatEvents() []telemetry.EventMeaning {
	const normal, warning, habitat = "Normal", "Warning", "Habitat"
	events := []telemetry.EventMeaning{
		{Type: normal, Reason: "ApplicationCreated", On: habitat, Meaning: "its Application was created"},
		{Type: normal, Reason: "ApplicationUpdated", On: habitat, Meaning: "its Application was changed"},
		{Type: normal, Reason: "PodsReplaced", On: habitat, Meaning: "Pods of an older revision were deleted, to be made anew"},
		{Type: normal, Reason: "PeerChosen", On: "ConfigMap of the peer file", Meaning: "another Pod is the peer of the ring, or none"},
		{Type: warning, Reason: "Overwritten", On: habitat, Meaning: "a change of what it has made was taken back: the note names fields and hand"},
		{Type: warning, Reason: "Deprecated", On: habitat, Meaning: "its customVersion is deprecated"},
	}
	for _, said := range habitatSaid() {
		if said.Condition == "Accepted" && said.Status == "False" && said.Reason != "PreviousTerminating" {
			events = append(events, telemetry.EventMeaning{Type: warning, Reason: said.Reason, On: habitat, Meaning: said.Meaning})
		}
	}
	return events
}

func events(p *page, _ string) error {
	p.section("Events", "`kubectl events --for configmap/NAME`, or `--for KIND/NAME` of an object on its cluster. Those of agents are by `krake-agent`:")
	eventTable(p, telemetry.EventMeanings())
	p.text("\nBy `krake-habitat`:\n")
	eventTable(p, habitatEvents())
	return nil
}

func eventTable(p *page, all []telemetry.EventMeaning) {
	var rows [][]string
	for _, event := range all {
		rows = append(rows, []string{code(event.Reason), event.Type, event.On, event.Meaning})
	}
	p.table([]string{"reason", "type", "about", "meaning"}, rows)
}
