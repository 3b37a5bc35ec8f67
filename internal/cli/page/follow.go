package page

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/krake-observer/krake-observer/internal/cli/apps"
	"github.com/krake-observer/krake-observer/internal/cli/env"
	"github.com/krake-observer/krake-observer/internal/cli/view"
	"github.com/krake-observer/krake-observer/internal/ui"
	"github.com/krake-observer/krake-observer/pkg/application"
)

// appRow is what the page keeps of an Application: its ConfigMap may have a megabyte.
type appRow struct {
	overview view.Overview
	admitted bool
	// seen has the time of each record of the history.
	seen []time.Time
	// shown is the row as it was reported last.
	shown ui.Row
}

// appRows reports rows that have changed.
type appRows struct {
	source  *source
	changed func(ui.Change)
	rows    map[types.NamespacedName]*appRow
	beats   apps.Heartbeats
}

// silenceInterval is how often it is looked which agents are no longer heard: no event reports that. It makes
// no request.
const silenceInterval = 5 * time.Second

// Follow implements [ui.Source].
func (s *source) Follow(ctx context.Context, changed func(ui.Change)) error {
	rows := appRows{source: s, changed: changed, rows: map[types.NamespacedName]*appRow{}}
	group, ctx := errgroup.WithContext(ctx)
	changes, beats := make(chan apps.Change), make(chan apps.Heartbeats)
	group.Go(func() error { return apps.Follow(ctx, s.Environment, s.scope, changes) })
	group.Go(func() error { return s.followLeases(ctx, beats) })
	ticker := time.NewTicker(silenceInterval)
	defer ticker.Stop()
	group.Go(func() error {
		for {
			select {
			case c, ok := <-changes:
				if !ok { // the watch has ended, and the group cancels the context: its error must be the first
					<-ctx.Done()
					return nil
				}
				rows.take(c)
			case rows.beats = <-beats:
				rows.look()
			case <-ticker.C:
				rows.look()
			}
		}
	})
	return group.Wait()
}

func (r *appRows) take(c apps.Change) {
	told := ui.Change{Listed: c.Listed}
	if c.Listed {
		clear(r.rows)
	}
	for _, i := range c.Items {
		name := nameOf(i)
		if c.Gone {
			if r.rows[name] != nil { // other ConfigMaps come and go, too
				delete(r.rows, name)
				told.Gone = append(told.Gone, name)
			}
			continue
		}
		row := &appRow{overview: view.OverviewOf(i, apps.Heartbeats{}, r.source.Now()), admitted: i.IsAdmitted()}
		if i.App != nil {
			for _, drift := range i.App.Status.Drifts {
				row.seen = append(row.seen, drift.Seen.Time)
				if drift.Repaired != "" {
					told.Repairs = append(told.Repairs, ui.Repair{NamespacedName: name, At: drift.Seen.Time, Text: driftSummary(drift, i.Stored.Namespace)})
				}
			}
		}
		row.shown = row.show(r.beats, r.source.Now())
		r.rows[name] = row
		told.Rows = append(told.Rows, row.shown)
	}
	if told.Listed || told.Rows != nil || told.Gone != nil {
		r.changed(told)
	}
}

// look reports the rows that have changed with the time, or with the agents that are heard.
func (r *appRows) look() {
	var told ui.Change
	for _, row := range r.rows {
		if shown := row.show(r.beats, r.source.Now()); shown != row.shown {
			row.shown = shown
			told.Rows = append(told.Rows, shown)
		}
	}
	if told.Rows != nil {
		r.changed(told)
	}
}

// show returns the row at a time. The age of a drift is on the page of the Application: here it would
// change all the time.
func (r *appRow) show(beats apps.Heartbeats, now time.Time) ui.Row {
	o := r.overview
	if silence := beats.Silence(o.Cluster, now); r.admitted && silence != "" {
		o.State, o.Ready, o.Message = view.StateAgentUnreachable, metav1.ConditionUnknown, silence
	}
	row := ui.Row{
		NamespacedName: types.NamespacedName{Namespace: o.Namespace, Name: o.Name}, Cluster: o.Cluster, Message: o.Message,
		State: cellOf(o.StateCell()), Ready: cellOf(o.ReadyCell()), Drifts: ui.Cell{Text: o.Drifts.Counted(), Tone: ui.Plain},
		Mode: string(o.Mode),
	}
	if o.Drifts.Open > 0 {
		row.Drifts = ui.Cell{Text: fmt.Sprintf("%s (%d open)", o.Drifts.Counted(), o.Drifts.Open), Tone: ui.Busy}
	}
	if o.Mode == application.Enforce && o.HeldUntil.After(now) {
		row.Mode = "held until " + env.TimeOf(o.HeldUntil)
	}
	if o.Held > 0 {
		row.Mode += ", " + env.Counted(o.Held, "object", "objects") + " held"
	}
	// A record counts once: only the newest of its drifts has a time, and others may be older than a day.
	for _, seen := range r.seen {
		if hours := int(now.Sub(seen) / time.Hour); hours >= 0 && hours < len(row.Hours) {
			row.Hours[len(row.Hours)-1-hours]++
		}
	}
	return row
}

func cellOf(c env.Cell) ui.Cell {
	tones := map[env.Colour]ui.Tone{env.Green: ui.Good, env.Yellow: ui.Busy, env.Red: ui.Bad}
	return ui.Cell{Text: c.Text, Tone: cmp.Or(tones[c.Colour], ui.Plain)}
}

// driftSummary returns "Deployment/web: spec.replicas: 2 -> 5, by kubectl-scale, reverted in 4ms".
func driftSummary(drift application.Drift, home string) string {
	repaired := view.RepairedCell(drift).Text
	if drift.Repaired == "" {
		repaired = "not repaired"
	}
	return env.OneLine(fmt.Sprintf("%s: %s, by %s, %s", view.ObjectText(drift.Object, home), view.FieldsText(drift), view.WriterOf(drift), repaired))
}

// followLeases sends the heartbeats of the agents, and then each change, until the context ends. A user
// who may not read or watch the Leases gets none.
func (s *source) followLeases(ctx context.Context, beats chan<- apps.Heartbeats) error {
	config, err := s.Hub.ToRESTConfig()
	if err != nil {
		return err
	}
	clients, err := coordinationv1client.NewForConfig(config)
	if err != nil {
		return err
	}
	leases := clients.Leases(application.AgentsNamespace)
	known, err := apps.ReadHeartbeats(ctx, s.Environment) // of all clusters
	if err != nil || !known.Read {
		return err
	}
	for ctx.Err() == nil { // a new watch begins with all Leases, so that no other list is needed
		switch err := followLeasesFrom(ctx, leases, known, beats); {
		case apierrors.IsForbidden(err):
			return nil
		case err != nil:
			return fmt.Errorf("watch the Leases of the agents: %w", err)
		}
		select { // a pause, in case each watch ends at once
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
	return nil
}

// followLeasesFrom sends the heartbeats until the watch ends.
func followLeasesFrom(ctx context.Context, leases coordinationv1client.LeaseInterface, known apps.Heartbeats, beats chan<- apps.Heartbeats) error {
	watcher, err := leases.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer watcher.Stop()
	for {
		sent := known
		sent.Leases = maps.Clone(known.Leases)
		select {
		case beats <- sent:
		case <-ctx.Done():
			return nil
		}
		event, ok := <-watcher.ResultChan()
		lease, isLease := event.Object.(*coordinationv1.Lease)
		switch {
		case !ok:
			return nil
		case !isLease:
			return apps.UnlessExpired(apierrors.FromObject(event.Object))
		case event.Type == watch.Deleted:
			delete(known.Leases, lease.Name)
		default:
			known.Leases[lease.Name] = lease.Spec
		}
	}
}
