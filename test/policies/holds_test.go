package policies

import (
	"fmt"
	"testing"

	"github.com/krake-observer/krake-observer/test/kit"
)

// A user who may edit ConfigMaps, and nothing else, cannot switch off what guards the objects of an
// Application. To let them be guarded again takes no right.
func TestHoldingBackTakesARight(t *testing.T) {
	const mode, until, hold, soon = "krake.dev/mode", "krake.dev/hold-until", "krake.dev/hold", "2100-01-02T15:04:05Z"
	refused := func(annotations string) string { return fmt.Sprintf(holdBack, annotations) }
	check(t, []write{
		{"suspend", namespaceEditor, moved, []edit{annotate(mode, "suspend")}, allowed},
		{"observe and hold", namespaceAdmin, moved, []edit{annotate(mode, "observe"), annotate(until, soon), annotate(hold, "deny")}, allowed},
		{"suspend", configMapEditor, moved, []edit{annotate(mode, "suspend")}, refused(mode)},
		{"observe", configMapEditor, moved, []edit{annotate(mode, "observe")}, refused(mode)},
		{"set an unreadable mode", configMapEditor, moved, []edit{annotate(mode, "Enforce")}, refused(mode)},
		{"hold", configMapEditor, moved, []edit{annotate(until, soon)}, refused(until)},
		{"both", configMapEditor, moved, []edit{annotate(mode, "suspend"), annotate(until, soon)}, refused(mode + " and " + until)},
		{"deny the holds of others", configMapEditor, moved, []edit{annotate(hold, "deny")}, refused(hold)},
		{"allow the holds of others", configMapEditor, changed(moved, annotate(hold, "deny")), []edit{noAnnotation(hold)}, refused(hold)},
		{"hold for longer", configMapEditor, changed(moved, annotate(until, soon)), []edit{annotate(until, "2101-01-02T15:04:05Z")}, refused(until)},
		{"suspend, by the agents' group alone", impostor, moved, []edit{annotate(mode, "suspend")}, fmt.Sprintf(notHeld, "")},

		{"enforce again", configMapEditor, changed(moved, annotate(mode, "suspend")), []edit{noAnnotation(mode)}, allowed},
		{"enforce again, in words", configMapEditor, changed(moved, annotate(mode, "observe")), []edit{annotate(mode, "enforce")}, allowed},
		{"end a hold", configMapEditor, changed(moved, annotate(until, soon)), []edit{noAnnotation(until)}, allowed},
		{"leave a hold as it is", configMapEditor, changed(moved, annotate(until, soon), annotate(mode, "suspend")), []edit{annotate("note", "x")}, allowed},
		{"create one that is suspended", configMapEditor, nil, []edit{annotated, annotate(mode, "suspend"), annotate(until, soon)}, allowed},
	})
}

// The audit log says who holds an Application back, and how.
func TestTheAuditLogSaysWhoHoldsBack(t *testing.T) {
	namespace := newNamespace(t)
	cm := admitted.in(t, namespace)
	mark := server.Mark(t)
	cm = mustUpdate(t, namespaceEditor, cm, annotate("krake.dev/mode", "suspend"))
	mustUpdate(t, namespaceEditor, cm, annotate("krake.dev/mode", "enforce"))
	var said []string
	for _, request := range mark.Requests(t, kit.Request.IsWrite, kit.In(namespace)) {
		said = append(said, request.Annotations["krake-configmaps/held-back"])
	}
	if len(said) != 2 || said[0] != "edith sets krake.dev/mode=suspend" || said[1] != "" {
		t.Errorf("the audit log has %q", said)
	}
}
