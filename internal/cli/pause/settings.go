package pause

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/krake-observer/krake-observer/internal/cli/apps"
	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/lens"
	"github.com/krake-observer/krake-observer/internal/pacing"
	"github.com/krake-observer/krake-observer/pkg/application"
	"github.com/krake-observer/krake-observer/pkg/manifest"
)

// change is a change of the annotations of an Application, or of one of its objects.
type change struct {
	// annotations are those to write; nil removes one.
	annotations map[string]any
	// done is the outcome, as "held until 2026-01-02T15:04:05Z".
	done     string
	warnings []string
}

func (w *change) warn(format string, arguments ...any) {
	w.warnings = append(w.warnings, fmt.Sprintf(format, arguments...))
}

// setting decides what to write, by the stored Application.
type setting struct {
	// looks: application needs to know which objects are held.
	looks bool
	// application decides for the Application as a whole, object for one of its live objects.
	application func(i apps.Item) (change, error)
	object      func(app *application.Application, id manifest.ID, live map[string]any) (change, error)
}

func holdSetting(until, now time.Time) setting {
	asked := env.TimeOf(until)
	until = until.UTC().Truncate(time.Second) // as the annotation has it
	held := change{annotations: map[string]any{application.HoldUntilAnnotation: asked}, done: "held until " + asked}
	return setting{
		application: func(i apps.Item) (change, error) { return holdApplication(held, i, until) },
		object: func(app *application.Application, id manifest.ID, live map[string]any) (change, error) {
			return holdObject(held, app, id, live, until, now)
		},
	}
}

// holdApplication warns of a hold that ends earlier than the one that it replaces. The webhook warns of
// one that the mode makes void.
func holdApplication(w change, i apps.Item, until time.Time) (change, error) {
	if i.IsDeleted() {
		return change{}, errGoing("a hold")
	}
	if former, err := application.ParseHold(i.Stored.Annotations[application.HoldUntilAnnotation]); err == nil && former.After(until) {
		by := ""
		if user := i.Stored.Annotations[application.HeldByAnnotation]; user != "" {
			by = " by " + env.OneLine(user)
		}
		w.warn("it was held until %s%s, and this hold ends earlier: to restore the former one, kubectl krake hold %s --until %s", env.TimeOf(former), by, i.Stored.Name, env.TimeOf(former))
	}
	return w, nil
}

// holdObject refuses a hold that would have no effect, and warns of one that the agent would
// shorten.
func holdObject(w change, app *application.Application, id manifest.ID, live map[string]any, until, now time.Time) (change, error) {
	self, err := manifest.Identify(live)
	switch {
	case err != nil:
		return change{}, err
	case app.Deleted:
		return change{}, errGoing("a hold")
	case app.Settings.DenyHolds:
		return change{}, fmt.Errorf("annotation %s of the Application is deny, so that a hold on one of its objects does not count: hold the whole Application (kubectl krake hold %s)",
			application.HoldAnnotation, app.Name)
	case !application.Marks(app.NamespacedName, app.UID, self).Prove(live):
		return change{}, fmt.Errorf("its annotation %s does not say that it belongs to the Application, whose agent leaves it alone: see condition Conflicted (kubectl krake describe %s)",
			application.OwnerAnnotation, app.Name)
	}
	if app.Settings.Mode != application.Enforce {
		w.warn("in mode %s the agent reverts nothing, so this hold has no effect until the mode is removed (kubectl krake resume %s)", app.Settings.Mode, app.Name)
	}
	at := slices.IndexFunc(app.Status.Objects, func(object application.ObjectStatus) bool {
		return lens.IsNamesake(object.ID, id) && cmp.Or(object.Namespace, app.Namespace) == cmp.Or(id.Namespace, app.Namespace)
	})
	var former *application.Hold
	if at >= 0 {
		former = app.Status.Objects[at].Hold
	}
	counted, _ := pacing.HeldUntil(app.Settings, former, env.TimeOf(until), apps.MostHold, now)
	switch {
	case !counted.Before(until):
	case former != nil && former.Renewed:
		return change{}, fmt.Errorf("it was held at %s and renewed since, and no agent counts a second renewal: it is held until %s at the latest: hold the whole Application (kubectl krake hold %s)",
			env.TimeOf(former.Since.Time), env.TimeOf(former.Until.Time), app.Name)
	default:
		w.warn("an agent holds an object for %s at most, unless its --max-hold says otherwise, so that this one is repaired from %s on: to hold the whole Application for longer, kubectl krake hold %s",
			env.Shortly(apps.MostHold), env.TimeOf(counted), app.Name)
	}
	return w, nil
}

func suspendSetting() setting {
	return setting{application: func(i apps.Item) (change, error) {
		if i.IsDeleted() {
			return change{}, errGoing("mode suspend")
		}
		if i.Stored.Annotations[application.ModeAnnotation] == string(application.Suspend) {
			return change{done: "suspended already"}, nil
		}
		return change{annotations: map[string]any{application.ModeAnnotation: string(application.Suspend)}, done: "suspended"}, nil
	}}
}

// errGoing refuses a setting that has no effect on an Application that is being deleted.
func errGoing(what string) error {
	return fmt.Errorf("it is being deleted, and %s does not keep its objects: annotation %s=%s does", what, application.DeletionPolicyAnnotation, application.Orphan)
}

// resumeSetting removes the annotations that stop repairs.
func resumeSetting(now time.Time) setting {
	return setting{
		looks: true,
		application: func(i apps.Item) (change, error) {
			w := takenOff(i.Stored.Annotations, now, application.HoldUntilAnnotation, application.ModeAnnotation)
			if i.App == nil {
				return w, nil
			}
			for _, object := range i.App.Status.Objects {
				until, sure := i.HeldUntil(object, now)
				named := env.ResourceName(object.ID)
				switch {
				case until.IsZero():
				case sure:
					w.warn("%s is held by an annotation of its own until %s: kubectl krake resume %s %s", named, env.TimeOf(until), i.App.Name, named)
				default:
					w.warn("%s may be held by an annotation of its own until %s, and could not be looked at: if it is, kubectl krake resume %s %s",
						named, env.TimeOf(until), i.App.Name, named)
				}
			}
			return w, nil
		},
		object: func(app *application.Application, _ manifest.ID, live map[string]any) (change, error) {
			w := takenOff(env.AnnotationsOf(live), now, application.HoldUntilAnnotation)
			if app.Settings.HoldUntil.After(now) || app.Settings.Mode != application.Enforce {
				w.warn("the Application as a whole is held, or its mode is not %s, so that nothing is repaired yet: kubectl krake resume %s", application.Enforce, app.Name)
			}
			return w, nil
		},
	}
}

// takenOff removes the existing ones of the annotations. If they had no effect, it does not
// report that anything was resumed.
func takenOff(annotations map[string]string, now time.Time, names ...string) change {
	w := change{annotations: map[string]any{}, done: "neither held nor suspended"}
	ended := false
	for _, name := range names {
		value, there := annotations[name]
		if !there || name == application.ModeAnnotation && value == string(application.Enforce) {
			continue
		}
		w.annotations[name] = nil
		until, err := application.ParseHold(value)
		ended = ended || name == application.ModeAnnotation || err == nil && until.After(now)
	}
	switch {
	case ended:
		w.done = "resumed"
	case len(w.annotations) > 0:
		w.done += ": what was left of a former hold is taken off"
	}
	return w
}

// untilOf returns the time of the flags --for and --until. Until is a time as in RFC 3339, or
// a time of day: the next time that the local clock shows it.
func untilOf(duration time.Duration, until string, now time.Time) (time.Time, error) {
	if until == "" {
		if duration < time.Second {
			return time.Time{}, fmt.Errorf("--for: %s holds nothing: name a duration of at least a second, as 90m", duration)
		}
		return now.Add(duration), nil
	}
	if clock, err := time.Parse("15:04", until); err == nil {
		at := time.Date(now.Year(), now.Month(), now.Day(), clock.Hour(), clock.Minute(), 0, 0, now.Location())
		if !at.After(now) {
			at = time.Date(now.Year(), now.Month(), now.Day()+1, clock.Hour(), clock.Minute(), 0, 0, now.Location())
		}
		return at, nil
	}
	at, err := application.ParseHold(until)
	switch {
	case err != nil:
		return time.Time{}, fmt.Errorf("--until: %w, or that of a clock here: 15:04", err)
	case !at.After(now):
		return time.Time{}, fmt.Errorf("--until: %s is past, so that nothing would be held: name a time that is to come", until)
	}
	return at, nil
}

// subject is what a command changes: Applications, or one object of one of them.
type subject struct {
	applications []string
	selector     string
	object       string // KIND/NAME
}

// subjectOf parses the arguments. Those with a slash are objects.
func subjectOf(arguments []string, selector string) (subject, error) {
	s := subject{selector: selector}
	for _, argument := range arguments {
		switch {
		case !strings.Contains(argument, "/"):
			s.applications = append(s.applications, argument)
		case s.object != "":
			return s, fmt.Errorf("%s and %s: name one object at a time", s.object, argument)
		default:
			s.object = argument
		}
	}
	switch {
	case s.object != "" && (len(s.applications) != 1 || selector != ""):
		return s, fmt.Errorf("%s: name the one Application that has it, as NAME %s", s.object, s.object)
	case selector != "" && len(s.applications) > 0:
		return s, errors.New("there are names and a --selector: leave one of the two out")
	case selector == "" && len(s.applications) == 0:
		return s, errors.New("no Application: name some, or choose them by --selector")
	}
	return s, nil
}
