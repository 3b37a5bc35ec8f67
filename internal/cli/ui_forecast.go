package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/internal/ui"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
	"github.com/krake-observer/krake-observer/pkg/plan"
)

// Forecast implements [ui.Source].
func (s *uiSource) Forecast(ctx context.Context, name, text string) (ui.Forecast, error) {
	f := file{"the text", []byte(text)}
	var drafts []draft
	if f.isApplications() {
		var err error
		if drafts, _, err = f.applications(); err != nil {
			return ui.Forecast{}, err
		}
	} else {
		if name == "" {
			return ui.Forecast{}, errors.New("the text is a manifest without an Application: name the Application")
		}
		if values, err := manifest.Decode(f.text); err != nil {
			return ui.Forecast{}, err
		} else if len(values) == 0 {
			return ui.Forecast{}, errors.New("the text has no resource: paste a manifest or an Application")
		}
		drafts = []draft{draftOf(name, f)}
	}
	var said bytes.Buffer
	d := s.quietly(&said)
	var forecast ui.Forecast
	for _, draft := range drafts {
		app, expected, err := d.prepare(ctx, draft)
		forecast.Said = linesIn(said.String())
		if err != nil {
			return forecast, err
		}
		parts, err := s.forecastOf(ctx, app, expected)
		if err != nil {
			return forecast, err
		}
		forecast.Parts = append(forecast.Parts, parts...)
	}
	return forecast, nil
}

// forecastOf compares the objects of an Application with those that exist.
func (s *uiSource) forecastOf(ctx context.Context, app *application.Application, expected []plan.Expected) ([]ui.ForecastPart, error) {
	if app.Deleted {
		return nil, fmt.Errorf("the Application %s is being deleted, and its objects are no longer repaired", app.NamespacedName)
	}
	clients, err := s.objectsOf(app.Cluster)
	if err != nil {
		return nil, err
	}
	var parts []ui.ForecastPart
	for _, object := range expected {
		live, err := clients.live(ctx, lens.Placed(app, object.ID))
		if err != nil {
			return nil, err
		}
		part, err := forecastPart(app, object, live)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	for _, id := range leaving(app, expected) {
		live, err := clients.live(ctx, id)
		if err != nil {
			return nil, err
		}
		if application.Marks(app.NamespacedName, app.UID, id).Prove(live) {
			parts = append(parts, ui.ForecastPart{Title: id.String(), Outcome: "it left the Application, and " + becomes(app, id), Tone: ui.Bad})
		}
	}
	return parts, nil
}

func forecastPart(app *application.Application, object plan.Expected, live map[string]any) (ui.ForecastPart, error) {
	c, err := compare(app, object, live, false)
	if err != nil {
		return ui.ForecastPart{}, err
	}
	part := ui.ForecastPart{Title: lens.Placed(app, object.ID).String(), Outcome: "nothing would change", Tone: ui.Good}
	switch {
	case live == nil:
		part.Outcome, part.Tone = "would be created", ui.Busy
	case c.live != c.desired:
		part.Outcome, part.Tone = "would be changed", ui.Busy
	case c.differs():
		part.Outcome, part.Tone = "would keep its values, with these notes", ui.Busy
	}
	if c.differs() {
		part.Diff = c.String()
	}
	if live != nil {
		part.Lines, err = lens.Lines(app, object, live, false)
	}
	return part, err
}
