package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/internal/ui"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// Application implements [ui.Source].
func (s *uiSource) Application(ctx context.Context, name types.NamespacedName) (ui.Application, error) {
	i, err := getIn(ctx, s.environment, name.Namespace, name.Name)
	if err = errors.Join(err, i.err); err != nil {
		return ui.Application{}, err
	}
	i.holds = holdsOf(ctx, s.environment, i)
	d := described{description{item: i, beats: heartbeatsOf(ctx, s.environment, []item{i}), now: s.now()}}
	page := ui.Application{About: uiTable(section{title: "About", rows: d.about()}), Objects: d.uiObjects(), Bars: d.bars()}
	page.NamespacedName = name
	page.Tables = append(page.Tables, d.uiConditions())
	for _, more := range []section{d.services(), d.leaving()} {
		page.Tables = append(page.Tables, uiTable(more))
	}
	for _, drift := range i.app.Status.Drifts {
		page.Drifts = append(page.Drifts, uiDriftOf(drift, name.Namespace))
	}
	return page, nil
}

// described is a description for the page.
type described struct{ description }

func uiTable(s section) ui.Table {
	table := ui.Table{Title: s.title}
	for _, c := range s.header {
		table.Header = append(table.Header, titled(c.text))
	}
	for _, row := range s.rows {
		var cells []ui.Cell
		for _, c := range row {
			shown := uiCell(c)
			shown.Text = strings.TrimSuffix(shown.Text, ":")
			cells = append(cells, shown)
		}
		table.Rows = append(table.Rows, cells)
	}
	return table
}

// titled returns "Type" for "TYPE".
func titled(name string) string { return name[:1] + strings.ToLower(name[1:]) }

// uiConditions are the conditions with their meanings and the way out.
func (d described) uiConditions() ui.Table {
	table := uiTable(d.conditions())
	table.Header = append(table.Header, "Meaning and way out")
	for i, c := range d.app.Status.Conditions {
		if reason, ok := status.Of(c.Reason); ok {
			text := strings.TrimSuffix(reason.Meaning+": "+reason.Remedy, ": ")
			table.Rows[i] = append(table.Rows[i], ui.Cell{Text: text, Tone: ui.Plain})
		}
	}
	return table
}

// uiObjects are the objects that the Application wants, those that it still holds, and others of the
// status.
func (d described) uiObjects() []ui.ObjectRow {
	statuses := map[manifest.ID]application.ObjectStatus{}
	for _, object := range d.app.Status.Objects {
		statuses[d.keyOf(object.ID)] = object
	}
	var rows []ui.ObjectRow
	add := func(id manifest.ID) {
		key := d.keyOf(id)
		object, known := statuses[key]
		if !known {
			object.ID = id
		}
		delete(statuses, key)
		rows = append(rows, d.uiObject(id, object))
	}
	expected, _ := expect(d.app, plan.NoTypes) // the conditions have the error
	for _, e := range expected {
		add(lens.Placed(d.app, e.ID))
	}
	for _, id := range leaving(d.app, expected) {
		add(id)
	}
	for _, object := range d.app.Status.Objects {
		if _, unlisted := statuses[d.keyOf(object.ID)]; unlisted {
			add(object.ID)
		}
	}
	return rows
}

// keyOf returns a key that is the same for an object in any version, with and without its namespace.
func (d described) keyOf(id manifest.ID) manifest.ID {
	id = lens.Placed(d.app, id)
	id.APIVersion = id.GroupVersionKind().Group
	return id
}

// uiObject returns the row of an object. The page shows no Secret of a hook, so that its row has no
// reference.
func (d described) uiObject(id manifest.ID, object application.ObjectStatus) ui.ObjectRow {
	row := ui.ObjectRow{
		Title: objectText(id, d.stored.Namespace), Health: uiCell(cell{object.Health, healthColour(object.Health)}), Reason: uiCell(d.objectReason(object)),
		Message: ui.Cell{Text: d.objectMessage(object), Tone: ui.Plain},
	}
	if !isOfHook(d.app, id) {
		row.Ref = ui.Ref{Application: nameOf(d.item), Object: id}
	}
	return row
}

// bars are the holds and fights of the status.
func (d described) bars() []ui.Bar {
	var bars []ui.Bar
	for _, object := range d.app.Status.Objects {
		lane := objectText(object.ID, d.stored.Namespace)
		if d.showsHold(object) {
			bars = append(bars, ui.Bar{
				Lane: lane, Kind: "hold", From: object.Hold.Since.Time, To: object.Hold.Until.Time,
				Summary: "held until " + timeOf(object.Hold.Until.Time),
			})
		}
		if object.Reason == status.Contended {
			bars = append(bars, ui.Bar{Lane: lane, Kind: "fight", From: d.contendedSince(), Summary: "fight: " + oneLine(object.Message)})
		}
	}
	return bars
}

// showsHold reports whether the timeline has the hold of an object. The status keeps a hold that was taken
// off, so that it would seem to go on.
func (d described) showsHold(object application.ObjectStatus) bool {
	if object.Hold == nil {
		return false
	}
	until, _ := d.heldUntil(object, d.now)
	return !until.IsZero() || !object.Hold.Until.After(d.now)
}

func (d described) contendedSince() time.Time {
	for _, c := range d.app.Status.Conditions {
		if c.Type == application.ContendedCondition && c.Status == metav1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return d.now
}

// uiDriftOf returns a record of the history with all that is known of it.
func uiDriftOf(drift application.Drift, home string) ui.Drift {
	shown := ui.Drift{Lane: objectText(drift.Object, home), Seen: drift.Seen.Time, Summary: driftSummary(drift, home)}
	record := [][2]string{{"Object", drift.Object.String()}, {"Seen", timeOf(drift.Seen.Time)}}
	for _, field := range drift.Fields {
		record = append(record, [2]string{"Field", fmt.Sprintf("%s: desired %s, found %s", field.Path, lens.PlainText(field.Want), lens.PlainText(field.Have))})
	}
	record = append(record, [2]string{"By", byWhom(drift)}, [2]string{"Operation", cmp.Or(drift.Operation, none)})
	if drift.Changed != nil {
		record = append(record, [2]string{"Changed", timeOf(drift.Changed.Time)})
	}
	record = append(record, [2]string{"Repaired", repairedCell(drift).text}, [2]string{"Count", fmt.Sprint(max(drift.Count, 1))})
	shown.Record = record
	if drift.Repaired != "" {
		shown.Repaired = drift.Seen.Time
		if drift.After != nil {
			shown.Repaired = drift.Seen.Add(drift.After.Duration)
		}
	}
	return shown
}
