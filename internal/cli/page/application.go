package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/krake-observer/krake-observer/internal/cli/apps"
	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/cli/view"
	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/internal/status"
	"github.com/krake-observer/krake-observer/internal/ui"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// Application implements [ui.Source].
func (s *source) Application(ctx context.Context, name types.NamespacedName) (ui.Application, error) {
	i, err := apps.GetIn(ctx, s.Environment, name.Namespace, name.Name)
	if err = errors.Join(err, i.Err); err != nil {
		return ui.Application{}, err
	}
	i.Holds = apps.HoldsOf(ctx, s.Environment, i)
	d := described{view.Description{Item: i, Beats: apps.HeartbeatsOf(ctx, s.Environment, []apps.Item{i}), Now: s.Now()}}
	page := ui.Application{About: tableOf(view.Section{Title: "About", Rows: d.About()}), Objects: d.objectRows(), Bars: d.bars()}
	page.NamespacedName = name
	page.Tables = append(page.Tables, d.conditionsTable())
	for _, more := range []view.Section{d.Services(), d.Leaving()} {
		page.Tables = append(page.Tables, tableOf(more))
	}
	for _, drift := range i.App.Status.Drifts {
		page.Drifts = append(page.Drifts, driftOf(drift, name.Namespace))
	}
	return page, nil
}

// described is a description for the page.
type described struct{ view.Description }

func tableOf(s view.Section) ui.Table {
	table := ui.Table{Title: s.Title}
	for _, c := range s.Header {
		table.Header = append(table.Header, titled(c.Text))
	}
	for _, row := range s.Rows {
		var cells []ui.Cell
		for _, c := range row {
			shown := cellOf(c)
			shown.Text = strings.TrimSuffix(shown.Text, ":")
			cells = append(cells, shown)
		}
		table.Rows = append(table.Rows, cells)
	}
	return table
}

// titled returns "Type" for "TYPE".
func titled(name string) string { return name[:1] + strings.ToLower(name[1:]) }

// conditionsTable are the conditions with their meanings and the way out.
func (d described) conditionsTable() ui.Table {
	table := tableOf(d.Conditions())
	table.Header = append(table.Header, "Meaning and way out")
	for i, c := range d.App.Status.Conditions {
		if reason, ok := status.Of(c.Reason); ok {
			text := strings.TrimSuffix(reason.Meaning+": "+reason.Remedy, ": ")
			table.Rows[i] = append(table.Rows[i], ui.Cell{Text: text, Tone: ui.Plain})
		}
	}
	return table
}

// objectRows are the objects that the Application wants, those that it still holds, and others of the
// status.
func (d described) objectRows() []ui.ObjectRow {
	statuses := map[manifest.ID]application.ObjectStatus{}
	for _, object := range d.App.Status.Objects {
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
		rows = append(rows, d.objectRow(id, object))
	}
	expected, _ := apps.Expect(d.App, plan.NoTypes) // the conditions have the error
	for _, e := range expected {
		add(lens.Placed(d.App, e.ID))
	}
	for _, id := range apps.Leaving(d.App, expected) {
		add(id)
	}
	for _, object := range d.App.Status.Objects {
		if _, unlisted := statuses[d.keyOf(object.ID)]; unlisted {
			add(object.ID)
		}
	}
	return rows
}

// keyOf returns a key that is the same for an object in any version, with and without its namespace.
func (d described) keyOf(id manifest.ID) manifest.ID {
	id = lens.Placed(d.App, id)
	id.APIVersion = id.GroupVersionKind().Group
	return id
}

// objectRow returns the row of an object. The page shows no Secret of a hook, so that its row has no
// reference.
func (d described) objectRow(id manifest.ID, object application.ObjectStatus) ui.ObjectRow {
	row := ui.ObjectRow{
		Title: view.ObjectText(id, d.Stored.Namespace), Health: cellOf(env.Cell{Text: object.Health, Colour: view.HealthColour(object.Health)}), Reason: cellOf(d.ObjectReason(object)),
		Message: ui.Cell{Text: d.ObjectMessage(object), Tone: ui.Plain},
	}
	if !apps.IsOfHook(d.App, id) {
		row.Ref = ui.Ref{Application: nameOf(d.Item), Object: id}
	}
	return row
}

// bars are the holds and fights of the status.
func (d described) bars() []ui.Bar {
	var bars []ui.Bar
	for _, object := range d.App.Status.Objects {
		lane := view.ObjectText(object.ID, d.Stored.Namespace)
		if d.showsHold(object) {
			bars = append(bars, ui.Bar{
				Lane: lane, Kind: "hold", From: object.Hold.Since.Time, To: object.Hold.Until.Time,
				Summary: "held until " + env.TimeOf(object.Hold.Until.Time),
			})
		}
		if object.Reason == status.Contended {
			bars = append(bars, ui.Bar{Lane: lane, Kind: "fight", From: d.contendedSince(), Summary: "fight: " + env.OneLine(object.Message)})
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
	until, _ := d.HeldUntil(object, d.Now)
	return !until.IsZero() || !object.Hold.Until.After(d.Now)
}

func (d described) contendedSince() time.Time {
	for _, c := range d.App.Status.Conditions {
		if c.Type == application.ContendedCondition && c.Status == metav1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return d.Now
}

// driftOf returns a record of the history with all that is known of it.
func driftOf(drift application.Drift, home string) ui.Drift {
	shown := ui.Drift{Lane: view.ObjectText(drift.Object, home), Seen: drift.Seen.Time, Summary: driftSummary(drift, home)}
	record := [][2]string{{"Object", drift.Object.String()}, {"Seen", env.TimeOf(drift.Seen.Time)}}
	for _, field := range drift.Fields {
		record = append(record, [2]string{"Field", fmt.Sprintf("%s: desired %s, found %s", field.Path, lens.PlainText(field.Want), lens.PlainText(field.Have))})
	}
	record = append(record, [2]string{"By", view.WriterOf(drift)}, [2]string{"Operation", cmp.Or(drift.Operation, env.None)})
	if drift.Changed != nil {
		record = append(record, [2]string{"Changed", env.TimeOf(drift.Changed.Time)})
	}
	record = append(record, [2]string{"Repaired", view.RepairedCell(drift).Text}, [2]string{"Count", fmt.Sprint(max(drift.Count, 1))})
	shown.Record = record
	if drift.Repaired != "" {
		shown.Repaired = drift.Seen.Time
		if drift.After != nil {
			shown.Repaired = drift.Seen.Add(drift.After.Duration)
		}
	}
	return shown
}
