package page

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/krake-observer/krake-observer/internal/cli/apps"
	"github.com/krake-observer/krake-observer/internal/cli/draft"
	"github.com/krake-observer/krake-observer/internal/cli/view"
	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/internal/plan"
	"github.com/krake-observer/krake-observer/internal/ui"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// Forecast implements [ui.Source].
func (s *source) Forecast(ctx context.Context, name, text string) (ui.Forecast, error) {
	f := draft.File{Name: "the text", Text: []byte(text)}
	var drafts []draft.Draft
	var leftOut []string
	if f.IsApplications() {
		var err error
		if drafts, leftOut, err = f.Applications(); err != nil {
			return ui.Forecast{}, err
		}
	} else {
		if name == "" {
			return ui.Forecast{}, errors.New("the text is a manifest without an Application: name the Application")
		}
		if values, err := manifest.Decode(f.Text); err != nil {
			return ui.Forecast{}, err
		} else if len(values) == 0 {
			return ui.Forecast{}, errors.New("the text has no resource: paste a manifest or an Application")
		}
		drafts = []draft.Draft{draft.New(name, f)}
		if err := application.CompressManifest(drafts[0].ConfigMap); err != nil {
			return ui.Forecast{}, err
		}
	}
	var said bytes.Buffer
	quiet := s.quietly(&said)
	var forecast ui.Forecast
	for _, one := range drafts {
		var parts []ui.ForecastPart
		app, expected, err := draft.Prepare(ctx, quiet, one)
		if err == nil {
			parts, err = s.forecastOf(ctx, app, expected)
		}
		forecast.Said = append(linesIn(said.String()), leftOut...)
		switch {
		case err != nil && len(drafts) == 1: // there is nothing else to show
			return forecast, err
		case err != nil:
			parts = append(parts, failedPart("Application "+one.ConfigMap.Name, err))
		}
		forecast.Parts = append(forecast.Parts, parts...)
	}
	return forecast, nil
}

func failedPart(title string, err error) ui.ForecastPart {
	return ui.ForecastPart{Title: title, Outcome: err.Error(), Tone: ui.Bad}
}

// forecastOf compares the objects of an Application with those that exist. It continues after a failure.
func (s *source) forecastOf(ctx context.Context, app *application.Application, expected []plan.Expected) ([]ui.ForecastPart, error) {
	if app.Deleted {
		return nil, fmt.Errorf("the Application %s is being deleted, and its objects are no longer repaired", app.NamespacedName)
	}
	clients, err := s.ObjectsOf(app.Cluster)
	if err != nil {
		return nil, err
	}
	var parts []ui.ForecastPart
	for _, object := range expected {
		id := lens.Placed(app, object.ID)
		live, err := clients.Live(ctx, id)
		var part ui.ForecastPart
		if err == nil {
			part, err = forecastPart(app, object, live)
		}
		if err != nil {
			part = failedPart(id.String(), err)
		}
		parts = append(parts, part)
	}
	for _, id := range apps.Leaving(app, expected) {
		live, err := clients.Live(ctx, id)
		if err != nil {
			parts = append(parts, failedPart(id.String(), err))
		}
		if application.Marks(app.NamespacedName, app.UID, id).Prove(live) {
			parts = append(parts, ui.ForecastPart{Title: id.String(), Outcome: "it left the Application, and " + apps.Becomes(app, id), Tone: ui.Bad})
		}
	}
	return parts, nil
}

func forecastPart(app *application.Application, object plan.Expected, live map[string]any) (ui.ForecastPart, error) {
	c, err := view.Compare(app, object, live, false)
	if err != nil {
		return ui.ForecastPart{}, err
	}
	part := ui.ForecastPart{Title: lens.Placed(app, object.ID).String(), Outcome: "nothing would change", Tone: ui.Good}
	switch {
	case live == nil:
		part.Outcome, part.Tone = "would be created", ui.Busy
	case c.Live != c.Desired:
		part.Outcome, part.Tone = "would be changed", ui.Busy
	case c.Differs():
		part.Outcome, part.Tone = "would keep its values, with these notes", ui.Busy
	}
	if c.Differs() {
		part.Diff = c.String()
	}
	if live != nil {
		part.Lines, err = lens.Lines(app, object, live, false)
	}
	return part, err
}
